"""Coordinates of histograms."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.admin.histograms import BASE_LINE, MARGIN_LEFT, MARGIN_RIGHT, MARGIN_TOP, WIDTH, draw_histograms


def test_bars_by_hand() -> None:
    histogram = {"edges": [0, 10, 20], "counts": [1, 4], "quantiles": {"p50": 12, "p95": 19, "max": 19}}
    (drawn,) = draw_histograms({"input_characters": histogram, "total_tokens": None})
    assert drawn.title == "Input, characters"
    low, high = drawn.bars
    # 424 units for 20 lengths: each bin is 212 wide, less a gap of 1; the fuller bin is as high as the chart.
    assert (low.x, low.width, high.x) == (44.5, 211.0, 256.5)
    assert (high.height, high.y, low.height) == (120.0, MARGIN_TOP, 30.0)
    assert high.label == "10 to 19: 4"
    assert [mark.label for mark in drawn.ends] == ["0", "19"]
    # 44 + 12.5 / 20 x 424 = 309
    assert [(mark.label, mark.x, mark.anchor) for mark in drawn.marks] == [
        ("p50 12", 309.0, "middle"),
        ("p95 19", 457.4, "end"),
    ]
    assert drawn.quantiles == (("p50", 12), ("p95", 19), ("max", 19))


@pytest.mark.parametrize(
    "histogram",
    [
        {"edges": [0, 1], "counts": [0], "quantiles": {}},
        {"edges": [], "counts": [], "quantiles": {}},
        {"edges": [0, 1], "counts": [1, 2], "quantiles": {}},
    ],
)
def test_nothing_to_draw(histogram: dict[str, object]) -> None:
    assert draw_histograms({"input_characters": histogram}) == ()


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=30), st.integers(0, 10**6), st.integers(1, 10**4))
def test_everything_stays_inside(counts: list[int], first: int, width: int) -> None:
    edges = [first + width * index for index in range(len(counts) + 1)]
    histogram = {"edges": edges, "counts": counts, "quantiles": {"p50": edges[-1] + 5}}
    for drawn in draw_histograms({"x": histogram}):
        for bar in drawn.bars:
            assert bar.x >= MARGIN_LEFT and bar.x + bar.width <= WIDTH - MARGIN_RIGHT + 1
            assert bar.y >= MARGIN_TOP and abs(bar.y + bar.height - BASE_LINE) < 0.11
        assert all(MARGIN_LEFT <= mark.x <= WIDTH - MARGIN_RIGHT for mark in drawn.marks)
