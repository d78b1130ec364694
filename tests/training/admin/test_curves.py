"""Curves as coordinates."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.admin.curves import HEIGHT, MARGIN_LEFT, MARGIN_RIGHT, WIDTH, build_charts, thin_out

VALUES = st.floats(min_value=-1e9, max_value=1e9, allow_subnormal=False)


def test_places_by_hand() -> None:
    (chart,) = build_charts({"loss": [(0, 0.0), (10, 2.0)]})
    # The grid runs from 0 to 2; steps from the left to the right margin.
    assert chart.series[0].path == "52.0,174.0 468.0,16.0"
    assert [tick.label for tick in chart.y_ticks] == ["0", "0.5", "1", "1.5", "2"]
    assert [tick.label for tick in chart.x_ticks] == ["0", "5", "10"]
    assert chart.series[0].last == "2"


def test_charts_without_points_are_left_out() -> None:
    assert build_charts({"loss": [], "unknown": [(1, 1.0)]}) == ()


def test_held_out_loss_shares_the_axes_of_the_loss() -> None:
    (chart,) = build_charts({"loss": [(1, 1.0), (9, 0.5)], "held_out_loss": [(5, 3.0)]})
    assert [series.label for series in chart.series] == ["training", "held out"]
    assert float(chart.y_ticks[-1].label) >= 3.0


def test_thinning_keeps_peaks_and_ends() -> None:
    points = [(step, 1.0) for step in range(5000)]
    points[2345] = (2345, 99.0)
    thinned = thin_out(points, limit=100)
    assert len(thinned) <= 100
    assert (2345, 99.0) in thinned
    assert (thinned[0], thinned[-1]) == (points[0], points[-1])
    assert [step for step, _ in thinned] == sorted(step for step, _ in thinned)


@pytest.mark.parametrize("value", [0.0, 5.0, -3.0, 1e-12])
def test_a_flat_line(value: float) -> None:
    (chart,) = build_charts({"loss": [(1, value), (2, value)]})
    assert chart.series[0].path


@given(st.lists(VALUES, min_size=1, max_size=50))
def test_everything_lies_inside(values: list[float]) -> None:
    (chart,) = build_charts({"loss": list(enumerate(values))})
    for pair in chart.series[0].path.split():
        x, y = map(float, pair.split(","))
        assert MARGIN_LEFT <= x <= WIDTH - MARGIN_RIGHT
        assert 0 <= y <= HEIGHT
