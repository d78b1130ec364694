"""The rules on evidence made by hand."""

import math
from dataclasses import replace
from typing import Any

import pytest

from training.engine.forensics.causes import is_rising, judge_cause
from training.engine.forensics.evidence import BadPart, Cause, Evidence, ExampleEvidence, NotFiniteReport


def example(number: int, *, is_finite: bool = True, loss: float = 1.0) -> ExampleEvidence:
    return ExampleEvidence(
        example_id=f"e{number}", loss=loss if is_finite else math.nan, gradient_norm=1.0, is_finite=is_finite,
        num_tokens=5, text="a\x1b[31mb" + "c" * 400,
    )  # fmt: skip


STEADY = tuple((step, 2.0 + 0.1 * (step % 2)) for step in range(1, 8))
PLAIN = Evidence(
    failed_step=8, first_bad_step=8, what=BadPart.LOSS, dtype="float32", bad_base_tensors=(),
    largest_base_tensor=("model.norm.weight", 1e30), bad_state_tensors=(), damaged_step=None,
    examples=tuple(example(i) for i in range(4)), sound_elsewhere=4, num_elsewhere=4,
    bad_before_training=frozenset(), is_finite_when_wide=None, wide_dtype="", losses=STEADY,
    gradient_norms=STEADY, weight_growth=1.1, limit="",
)  # fmt: skip
ONE_BAD = (example(0, is_finite=False), *PLAIN.examples[1:])
ALL_BAD = tuple(example(i, is_finite=False) for i in range(4))
ALL_IDS = frozenset(f"e{i}" for i in range(4))
RISING = tuple((step, 2.0**step) for step in range(1, 8))


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({}, Cause.UNKNOWN),
        ({"examples": ONE_BAD}, Cause.POISONED_EXAMPLE),
        ({"examples": ONE_BAD, "bad_before_training": frozenset({"e0"})}, Cause.POISONED_EXAMPLE),
        # Weights that were driven up make the most sensitive example fail first.
        ({"examples": ONE_BAD, "losses": RISING}, Cause.LEARNING_RATE),
        (
            {"examples": ONE_BAD, "losses": RISING, "bad_before_training": frozenset({"e0"})},
            Cause.POISONED_EXAMPLE,
        ),
        # The only example of its step: others tell whether the weights are at fault.
        ({"examples": ONE_BAD[:1]}, Cause.POISONED_EXAMPLE),
        ({"examples": ONE_BAD[:1], "sound_elsewhere": 0}, Cause.UNKNOWN),
        ({"examples": ALL_BAD, "sound_elsewhere": 0}, Cause.UNKNOWN),
        ({"examples": ALL_BAD, "sound_elsewhere": 0, "weight_growth": math.nan}, Cause.LEARNING_RATE),
        ({"examples": ALL_BAD, "sound_elsewhere": 0, "gradient_norms": RISING}, Cause.LEARNING_RATE),
        ({"what": BadPart.PARAMETER}, Cause.LEARNING_RATE),
        ({"what": BadPart.MOMENT}, Cause.UNKNOWN),
        (
            {"examples": ALL_BAD, "sound_elsewhere": 0, "bad_before_training": ALL_IDS},
            Cause.BASE_WEIGHTS,
        ),
        ({"examples": ONE_BAD, "bad_base_tensors": ("model.norm.weight",)}, Cause.BASE_WEIGHTS),
        (
            {"examples": ONE_BAD, "dtype": "float16", "is_finite_when_wide": True, "wide_dtype": "float32"},
            Cause.FLOAT16_OVERFLOW,
        ),
        ({"examples": ONE_BAD, "dtype": "float16", "is_finite_when_wide": False}, Cause.POISONED_EXAMPLE),
        ({"damaged_step": 5, "bad_state_tensors": ("exp_avg of a",)}, Cause.OPTIMISER_STATE),
        ({"first_bad_step": None, "what": None, "examples": ()}, Cause.UNKNOWN),
    ],
)
def test_each_cause(changes: dict[str, Any], cause: Cause) -> None:
    judgement = judge_cause(replace(PLAIN, **changes))
    assert judgement.cause is cause
    assert judgement.message
    assert judgement.treatment


def test_messages_carry_the_numbers() -> None:
    driven = replace(
        PLAIN, examples=ALL_BAD, sound_elsewhere=0, losses=RISING, weight_growth=40.0, failed_step=9
    )
    assert judge_cause(driven).message == (
        "Step 8 is the first with a value that is not finite (loss); the training noticed it at step 9. "
        "4 of the step's 4 examples are not finite alone; with the untrained model they are finite. "
        "Before it the loss rose from 2 to 128 and the trainable weights grew 40 times."
    )
    assert judge_cause(replace(PLAIN, limit="Only 3 steps.")).message.endswith("Only 3 steps.")


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), False),
        (((1, 9.0),), False),
        (((1, 1.0), (2, 1.9)), False),
        (((1, 1.0), (2, 2.0)), True),
        # It has come down again.
        (((1, 1.0), (2, 50.0), (3, 1.0)), False),
        # Twice next to nothing is nothing: both count as 0.1.
        (((1, 0.001), (2, 0.01)), False),
    ],
)
def test_rising(values: tuple[tuple[int, float], ...], expected: bool) -> None:
    assert is_rising(values, 2.0) is expected


def test_the_record_is_strict_json_of_bounded_size() -> None:
    many = tuple(example(i, is_finite=i != 70, loss=float(i)) for i in range(100))
    evidence = replace(PLAIN, examples=many, losses=((7, math.inf),))
    report = NotFiniteReport(
        evidence=evidence,
        judgement=judge_cause(evidence),
        checkpoint_step=0,
        modules=(),
        first_bad_module=None,
    )
    document = report.to_json()
    assert document["num_examples"] == 100
    assert [item["example_id"] for item in document["examples"][:3]] == ["e70", "e99", "e98"]
    assert len(document["examples"]) == 64
    assert document["examples"][0]["loss"] is None
    assert document["losses"] == [[7, None]]
    text = document["examples"][0]["text"]
    assert text.startswith("a\\x1b[31mb")
    assert text.endswith("ccc")
    assert len(text) == 300
