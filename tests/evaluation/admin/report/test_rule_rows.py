"""The rule table: numbers as text and places on bars."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.admin.report.rule_rows import BAR_WIDTH, build_bar, build_rule_groups, format_number

FINITE = st.floats(min_value=-1e6, max_value=1e6)


def test_numbers() -> None:
    assert [format_number(value) for value in (0.91666, 1, None)] == ["0.917", "1.000", "\u2013"]


def test_places_on_a_bar() -> None:
    bar = build_bar(0.5, [0.4, 0.6], 0.4)
    assert bar is not None
    # 0.4 to 0.6 with 15 % of the span at each side, between margins of 8 of 168: by hand.
    assert bar.low == bar.threshold == pytest.approx(8 + 152 * 0.15 / 1.3, abs=0.01)
    assert bar.observed == pytest.approx(84, abs=0.01)
    assert bar.high == pytest.approx(168 - 8 - 152 * 0.15 / 1.3, abs=0.01)
    assert bar.label == "value 0.500, 95 % interval 0.400 to 0.600, threshold 0.400"


@pytest.mark.parametrize(("observed", "threshold"), [(None, 0.5), (0.5, None), (None, None)])
def test_one_value_makes_no_bar(observed: float | None, threshold: float | None) -> None:
    assert build_bar(observed, None, threshold) is None


@given(FINITE, FINITE, FINITE, FINITE)
def test_everything_lies_on_the_bar(observed: float, low: float, high: float, threshold: float) -> None:
    bar = build_bar(observed, sorted([low, high]), threshold)
    assert bar is not None
    for place in (bar.observed, bar.low, bar.high, bar.threshold):
        assert place is not None
        assert 0 <= place <= BAR_WIDTH


def rule(name: str, outcome: str, **changes: object) -> dict[str, object]:
    return {"rule": name, "outcome": outcome, "explanation": "", "parts": [], "example_ids": []} | changes


def test_what_failed_comes_first() -> None:
    outcomes = ["passed", "skipped", "failed", "inconclusive"]
    groups = build_rule_groups([rule(outcome, outcome) for outcome in outcomes])
    assert [group.rows[0].name for group in groups] == ["failed", "inconclusive", "passed", "skipped"]


def test_parts_follow_their_rule_and_counts_have_no_decimals() -> None:
    part = {"name": "chat & co", "outcome": "failed", "observed": 2.0, "threshold": 0.0, "example_ids": ["a"]}
    (group,) = build_rule_groups([rule("canary_parity", "failed", parts=[part])])
    assert [row.is_part for row in group.rows] == [False, True]
    assert (group.rows[1].observed, group.rows[1].threshold) == ("2", "0")
    assert group.rows[1].query == "rule=canary_parity&part=chat+%26+co"
