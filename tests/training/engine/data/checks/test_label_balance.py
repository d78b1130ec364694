import math

import pytest

from registry.artifacts.findings import Severity
from tests.training.engine.data.checks.conftest import Make, Run
from training.engine.data.checks.label_balance import KIND, entropy_bits


def test_one_value_above_eighty_percent(run: Run, make: Make) -> None:
    pairs = [("q", {"urgency": "high", "module": m}) for m in "ab" * 42] + [
        ("q", {"urgency": "low", "module": m}) for m in "ab" * 8
    ]
    (finding,) = run(KIND, make(*pairs))
    assert (finding.code, finding.severity, finding.where) == (
        "imbalanced-field",
        Severity.WARNING,
        "answer/urgency",
    )
    # 84 of 100; entropy of (0.84, 0.16) by hand: 0.84 * 0.2515 + 0.16 * 2.6439 = 0.634 bits.
    assert "high in 84 of 100 examples (84%); entropy 0.63 of at most 1.00 bits" in finding.message
    assert (finding.num_examples, finding.example_ids[0]) == (16, "e84")


def test_eighty_percent_exactly_is_allowed(run: Run, make: Make) -> None:
    assert run(KIND, make(*[("q", "yes")] * 80, *[("q", "no")] * 20)) == ()


def test_constant_fields(run: Run, make: Make) -> None:
    found = run(KIND, make(*[("q", {"a": True, "b": i % 3}) for i in range(30)], tags={"channel": "mail"}))
    assert [(item.code, item.severity, item.where) for item in found] == [
        ("constant-field", Severity.WARNING, "answer/a"),
        ("constant-field", Severity.INFO, "tags/channel"),
    ]


def test_rare_values(run: Run, make: Make) -> None:
    pairs = [("问", {"类别": value}) for value in ["网络"] * 20 + ["账单"] * 20 + ["其他"] * 2]
    (finding,) = run(KIND, make(*pairs))
    assert (finding.code, finding.severity, finding.num_examples) == ("rare-values", Severity.INFO, 2)
    assert "其他 (2)" in finding.message


def test_text_and_open_vocabularies_are_no_labels(run: Run, make: Make) -> None:
    assert run(KIND, make(*[("q", {"name": f"n{i}"}) for i in range(100)])) == ()
    assert run(KIND, make(*[("q", f"A sentence with the number {i % 5}. " * 3) for i in range(100)])) == ()
    # Each value twice or more, but more than 50 of them.
    assert run(KIND, make(*[("q", {"name": f"n{i % 51}"}) for i in range(510)])) == ()


def test_general_data_and_small_sets(run: Run, make: Make) -> None:
    assert run(KIND, make(*[("q", "same")] * 100, is_general=True)) == ()
    assert run(KIND, make(*[("q", "same")] * 10)) == ()


def test_parameters(run: Run, make: Make) -> None:
    pairs = [("q", "yes")] * 70 + [("q", "no")] * 30
    assert [item.code for item in run(KIND, make(*pairs), max_fraction=0.6)] == ["imbalanced-field"]
    assert [item.code for item in run(KIND, make(*pairs), min_count=31)] == ["rare-values"]


def test_entropy() -> None:
    # Closed form: n equally frequent values have log2(n) bits.
    assert entropy_bits([5, 5, 5, 5]) == pytest.approx(2)
    assert entropy_bits([7]) == 0
    assert entropy_bits([3, 1]) == pytest.approx(-(0.75 * math.log2(0.75) + 0.25 * math.log2(0.25)))
