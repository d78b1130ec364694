import pytest

from registry.artifacts.findings import Severity
from tests.training.engine.lint.plans import find, make_data, make_plan, severity_of
from training.engine.lint.plan import LengthFacts, TrainingPlan


def with_lengths(
    common: int, longest: int, num_too_long: int | None = 0, *, limit: int = 2048, num_rows: int = 2000
) -> TrainingPlan:
    lengths = LengthFacts(common_tokens=common, longest_tokens=longest, num_too_long=num_too_long)
    return make_plan(data=make_data(num_rows, lengths=lengths), max_length_tokens=limit)


@pytest.mark.parametrize(
    ("num_too_long", "severity"),
    # 5 % of 2000 rows are 100: what a maximum at the 95th percentile drops.
    [(0, None), (1, Severity.INFO), (100, Severity.INFO), (101, Severity.WARNING), (2000, Severity.ERROR)],
)
def test_rows_that_are_dropped(num_too_long: int, severity: Severity | None) -> None:
    assert severity_of(with_lengths(1800, 4000, num_too_long), "rows-dropped-by-length") is severity


def test_dropped_rows_are_told_with_the_numbers() -> None:
    finding = find(with_lengths(3100, 4000, 150), "rows-dropped-by-length")
    assert finding is not None
    assert finding.message == (
        "150 of 2000 rows are longer than max_length_tokens (2048) and are left out; the 95th percentile is "
        "3100 tokens, the longest row has 4000."
    )


@pytest.mark.parametrize(
    ("common", "longest", "limit", "is_told"),
    [
        (1000, 1500, 2048, True),  # 1.5 times: a third of the memory
        (1001, 1500, 2048, False),
        (1000, 1500, 1499, False),  # the longest row is dropped already
        (300, 1024, 2048, False),  # short rows take little memory
        (300, 1025, 2048, True),
        (900, 1200, 2048, False),
    ],
)
def test_a_maximum_at_the_longest_row(common: int, longest: int, limit: int, is_told: bool) -> None:
    plan = with_lengths(common, longest, limit=limit)
    assert (severity_of(plan, "max-length-at-the-maximum") is Severity.WARNING) is is_told


def test_a_maximum_at_the_percentile_is_fine() -> None:
    plan = with_lengths(1000, 4000, 100, limit=1000)
    assert find(plan, "max-length-at-the-maximum") is None
    assert severity_of(plan, "rows-dropped-by-length") is Severity.INFO
