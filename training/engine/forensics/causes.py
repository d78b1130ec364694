"""From evidence to the likely cause. No torch here: every rule can be followed by hand.

The order of the rules is that of certainty: what is read off a tensor or shown by computing the step again
comes before what is inferred from how losses went.
"""

import math
from collections.abc import Callable, Sequence
from typing import Final

from registry.artifacts.findings import shown, shown_list
from training.engine.forensics.evidence import BadPart, Cause, Evidence, ExampleEvidence, Judgement

MIN_LOSS_RISE: Final = 2.0
"""Last loss over the lowest before it. This and the following bounds are our choice: no source states any,
and they only decide between causes of a step that is known to be bad."""
MIN_NORM_RISE: Final = 10.0
"""Last gradient norm over the lowest before it; norms of single steps scatter more than losses."""
MIN_WEIGHT_GROWTH: Final = 10.0
"""Norm of the trainable weights over that at the start, which for a LoRA is that of its random A."""
NEGLIGIBLE: Final = 0.1
"""Losses (nats per token) and norms below this count as this: near zero any ratio means nothing."""
MAX_POISONED_FRACTION: Final = 0.5
"""More bad examples than this are no exception in the data."""

_TREATMENTS: Final = {
    Cause.FLOAT16_OVERFLOW: (
        "Set training.dtype to bfloat16, which has float32's range; on a card without it, to float32."
    ),
    Cause.POISONED_EXAMPLE: (
        "Look at these examples, mend or remove them, and look for others like them; then start again."
    ),
    Cause.LEARNING_RATE: (
        "Lower training.learning_rate to a third, with max_grad_norm at 1.0 and a warm-up of at least 3 %, "
        "and start again."
    ),
    Cause.BASE_WEIGHTS: (
        "Take the base model again from its source and compare the digests; nothing can be trained on it as "
        "it is."
    ),
    Cause.OPTIMISER_STATE: (
        "Remove the damaged checkpoint: the training then goes on from the one before it, or begins anew. "
        "Check the disk that it lies on."
    ),
    Cause.UNKNOWN: (
        "Start again with the same seed: if it fails at another step, suspect the machine (memory, card, "
        "driver); if at the same, look at the examples and modules in the record."
    ),
}


def judge_cause(evidence: Evidence) -> Judgement:
    """Return the likely cause with its evidence in one or two sentences, and the first treatment."""
    found = (rule(evidence) for rule in _RULES)
    cause, message = next((answer for answer in found if answer is not None), None) or _answer_unknown(
        evidence
    )
    if evidence.limit:
        message += f" {evidence.limit}"
    return Judgement(cause=cause, message=message, treatment=_TREATMENTS[cause])


def is_rising(values: Sequence[tuple[int, float]], factor: float) -> bool:
    """Return whether the last value is at least ``factor`` times the lowest before it; two are needed."""
    if len(values) < 2:
        return False
    lowest = min(value for _, value in values[:-1])
    return values[-1][1] >= factor * max(lowest, NEGLIGIBLE)


_Found = tuple[Cause, str] | None


def _judge_wide(evidence: Evidence) -> _Found:
    if evidence.dtype != "float16" or not evidence.is_finite_when_wide:
        return None
    message = (
        f"{_opening(evidence)} With the same weights and examples the step is finite in "
        f"{evidence.wide_dtype}, so a value left the range of float16 (65504)."
    )
    if evidence.bad_base_tensors:
        message += f" The base has weights beyond it: {shown_list(evidence.bad_base_tensors)}."
    elif _is_driven_up(evidence):
        message += f" {_describe_rise(evidence)} Lower the learning rate as well."
    return Cause.FLOAT16_OVERFLOW, message


def _judge_base_tensors(evidence: Evidence) -> _Found:
    if not evidence.bad_base_tensors:
        return None
    message = (
        f"{_opening(evidence)} The base model itself holds values that are not finite, in "
        f"{shown_list(evidence.bad_base_tensors)}."
    )
    bad = evidence.bad_examples
    if bad and len(bad) < len(evidence.examples):
        message += f" They are met by {_list_ids(bad)}."
    return Cause.BASE_WEIGHTS, message


def _judge_stored_state(evidence: Evidence) -> _Found:
    if evidence.damaged_step is None:
        return None
    names = evidence.bad_state_tensors
    holds = (
        f"holds values that are not finite in {shown_list(names, limit=3)}"
        if names
        else "gives no finite loss"
    )
    origin = (
        "whether training made it so could not be tried"
        if evidence.limit
        else "training up to there from the sound state before it does not make it so: it is damaged"
    )
    return Cause.OPTIMISER_STATE, (
        f"{_opening(evidence)} The checkpoint of step {evidence.damaged_step} {holds}, and {origin}."
    )


def _judge_examples(evidence: Evidence) -> _Found:
    bad = evidence.bad_examples
    num_tried = len(evidence.examples) + evidence.num_elsewhere
    num_bad = len(bad) + evidence.num_elsewhere - evidence.sound_elsewhere
    if not bad or num_bad > MAX_POISONED_FRACTION * num_tried:
        return None
    are_always = all(example.example_id in evidence.bad_before_training for example in bad)
    if not are_always and _is_driven_up(evidence):
        return None
    before = "gives no finite number for them either" if are_always else "is finite for them"
    others = (
        "the others are"
        if len(bad) < len(evidence.examples)
        else "examples of other steps are, with the same weights"
    )
    return Cause.POISONED_EXAMPLE, (
        f"{_opening(evidence)} {_count_bad(evidence)} ({_list_ids(bad)}); {others}. The untrained model "
        f"{before}."
    )


def _judge_untrained(evidence: Evidence) -> _Found:
    bad = evidence.bad_examples
    if not bad or not all(example.example_id in evidence.bad_before_training for example in bad):
        return None
    name, largest = evidence.largest_base_tensor
    return Cause.BASE_WEIGHTS, (
        f"{_opening(evidence)} {_count_bad(evidence)}, and the untrained model gives no finite number for "
        f"them either, though all of its values are finite; the largest is {largest:.3g}, in {shown(name)}."
    )


def _judge_update(evidence: Evidence) -> _Found:
    if evidence.what is BadPart.PARAMETER and not evidence.bad_examples:
        reason = (
            "Its loss and gradients are finite, the weights after its update are not: the update was too "
            "long."
        )
    elif evidence.bad_examples and _is_driven_up(evidence):
        reason = f"{_count_bad(evidence)}; with the untrained model they are finite."
    else:
        return None
    rise = f" {_describe_rise(evidence)}" if _is_driven_up(evidence) else ""
    return Cause.LEARNING_RATE, f"{_opening(evidence)} {reason}{rise}"


def _answer_unknown(evidence: Evidence) -> tuple[Cause, str]:
    if evidence.first_bad_step is None and not evidence.limit:
        reason = "Doing the steps again from the last sound state gives finite numbers only."
    elif not evidence.bad_examples:
        reason = "Each of its examples is finite by itself."
    else:
        reason = f"{_count_bad(evidence)}; losses, gradients and weights did not rise before it."
    return Cause.UNKNOWN, f"{_opening(evidence)} {reason}"


_RULES: Final[tuple[Callable[[Evidence], _Found], ...]] = (
    _judge_wide,
    _judge_base_tensors,
    _judge_stored_state,
    _judge_examples,
    _judge_untrained,
    _judge_update,
)


def _opening(evidence: Evidence) -> str:
    bad, failed = evidence.first_bad_step, evidence.failed_step
    if bad is None:
        if failed is None:
            return "No step with a number that is not finite was found."
        return f"The training stopped at step {failed} on a number that is not finite."
    text = f"Step {bad} is the first with a value that is not finite ({evidence.what})"
    return f"{text}; the training noticed it at step {failed}." if failed not in (bad, None) else f"{text}."


def _count_bad(evidence: Evidence) -> str:
    num_bad, num_examples = len(evidence.bad_examples), len(evidence.examples)
    return (
        f"{num_bad} of the step's {num_examples} examples {'is' if num_bad == 1 else 'are'} not finite alone"
    )


def _list_ids(examples: Sequence[ExampleEvidence]) -> str:
    return shown_list(example.example_id for example in examples)


def _is_driven_up(evidence: Evidence) -> bool:
    return (
        is_rising(evidence.losses, MIN_LOSS_RISE)
        or is_rising(evidence.gradient_norms, MIN_NORM_RISE)
        or _has_grown(evidence)
    )


def _has_grown(evidence: Evidence) -> bool:
    # NaN counts as grown.
    return not evidence.weight_growth < MIN_WEIGHT_GROWTH


def _describe_rise(evidence: Evidence) -> str:
    parts = [
        f"the {name} rose from {min(value for _, value in values[:-1]):.3g} to {values[-1][1]:.3g}"
        for name, values, factor in (
            ("loss", evidence.losses, MIN_LOSS_RISE),
            ("gradient norm", evidence.gradient_norms, MIN_NORM_RISE),
        )
        if is_rising(values, factor)
    ]
    if _has_grown(evidence):
        growth = evidence.weight_growth
        times = f"{growth:.3g} times" if math.isfinite(growth) else "beyond all numbers"
        parts.append(f"the trainable weights grew {times}")
    return f"Before it {' and '.join(parts)}."
