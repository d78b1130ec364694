"""Findings about what ends a training, which the training itself reports: no memory left, no finite loss."""

from collections.abc import Sequence

from registry.artifacts.findings import Severity
from training.engine.handbook.lookup import get_treatment
from training.engine.handbook.rows import HandbookRow
from training.engine.monitor.findings import Finding
from training.engine.monitor.statistics import median


def describe_out_of_memory(
    *,
    step: int,
    batch_lengths: Sequence[int] = (),
    row_lengths: Sequence[int] = (),
    is_evaluation: bool = False,
    has_grown: bool = False,
) -> Finding:
    """Return the finding about memory that ran out.

    In the first step weights and states do not fit; later it is a long example's activations or a leak; in
    the evaluation it is kept graphs (handbook rows 5 and 6; guide 6.2).

    Args:
        step: The optimiser step in which it happened, from 1; for an evaluation the step before it.
        batch_lengths: Tokens of the rows that were computed; [] when not known.
        row_lengths: Tokens of all rows, to compare with; [] when not known.
        is_evaluation: Whether it happened while measuring the held-out loss.
        has_grown: Whether memory had been seen to grow from step to step before.
    """
    if is_evaluation:
        row, name, where = HandbookRow.MEMORY_GROWS_AT_EVALUATION, "at-evaluation", "in the evaluation after"
    elif step <= 1:
        row, name, where = HandbookRow.OUT_OF_MEMORY_AT_START, "at-start", "in"
    else:
        row, name, where = HandbookRow.OUT_OF_MEMORY_LATER, "later", "in"
    evidence: dict[str, float] = {"step": step}
    message = f"Memory ran out {where} step {step}"
    if batch_lengths:
        evidence["longest_in_batch_tokens"] = max(batch_lengths)
        message += f", whose longest row has {max(batch_lengths)} tokens"
    if row_lengths:
        evidence |= {"median_row_tokens": median(row_lengths), "longest_row_tokens": max(row_lengths)}
        message += f" (all rows: median {median(row_lengths):g}, longest {max(row_lengths)})"
    index = 2 if has_grown and row is HandbookRow.OUT_OF_MEMORY_LATER else 0
    return Finding(
        code=f"monitor/out-of-memory-{name}",
        row=row,
        severity=Severity.ERROR,
        step=step,
        message=f"{message}.",
        evidence=evidence,
        treatment=get_treatment(row, index),
    )


def describe_not_finite(*, step: int, what: str) -> Finding:
    """Return the finding about a loss or gradient that is infinite or no number.

    Args:
        step: The optimiser step, from 1.
        what: "loss" or "gradient norm".
    """
    return Finding(
        code="monitor/loss-not-finite",
        row=HandbookRow.LOSS_NOT_FINITE,
        severity=Severity.ERROR,
        step=step,
        message=f"The {what} of step {step} is not finite.",
        evidence={"step": step},
    )
