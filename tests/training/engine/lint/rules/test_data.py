import pytest

from registry.artifacts.findings import Severity
from tests.training.engine.lint.plans import find, make_data, make_plan, severity_of
from training.engine.lint.plan import LengthFacts


@pytest.mark.parametrize(
    ("num_rows", "severity"),
    [(0, Severity.ERROR), (1, Severity.WARNING), (199, Severity.WARNING), (200, None)],
)
def test_few_rows(num_rows: int, severity: Severity | None) -> None:
    assert severity_of(make_plan(data=make_data(num_rows)), "few-rows") is severity


def test_rows_that_are_too_long_do_not_count() -> None:
    lengths = LengthFacts(common_tokens=3000, longest_tokens=4000, num_too_long=150)
    assert severity_of(make_plan(data=make_data(300, lengths=lengths)), "few-rows") is Severity.WARNING


@pytest.mark.parametrize(
    ("fraction", "said"),
    [
        (0.0, "forgets"),
        (0.049, "4.9%"),
        (0.05, None),
        (0.1, None),
        (0.2, None),
        (0.21, "21%"),
        (1.0, "100%"),
    ],
)
def test_general_data(fraction: float, said: str | None) -> None:
    finding = find(make_plan(data=make_data(general_fraction=fraction)), "general-fraction")
    if said is None:
        assert finding is None
    else:
        assert finding is not None and said in finding.message


def test_held_out_rows() -> None:
    assert severity_of(make_plan(has_held_out=False), "no-held-out-set") is Severity.WARNING
    assert find(make_plan(has_held_out=True), "no-held-out-set") is None
