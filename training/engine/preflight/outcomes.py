"""Short ways to say how a check came out. No torch here."""

from collections.abc import Sequence
from typing import Final

from training.engine.handbook.rows import HandbookRow
from training.engine.preflight.report import MAX_LISTED_IDS, CheckResult, CheckStatus

FAILING_FRACTION: Final = 0.01
"""From this part of the examples on, what single examples may have by accident spoils the training (the
project's own choice; a person decides about fewer)."""


def passed(code: str, message: str) -> CheckResult:
    """Nothing is the matter."""
    return CheckResult(code=code, status=CheckStatus.PASSED, message=message)


def skipped(code: str, message: str) -> CheckResult:
    """It could not be checked; the message says why."""
    return CheckResult(code=code, status=CheckStatus.SKIPPED, message=message)


def failed(
    code: str, row: HandbookRow, message: str, *, remedy: str, example_ids: Sequence[str] = ()
) -> CheckResult:
    """The training would be wasted."""
    return _make(CheckStatus.FAILED, code, row, message, remedy, example_ids)


def warned(
    code: str, row: HandbookRow, message: str, *, remedy: str, example_ids: Sequence[str] = ()
) -> CheckResult:
    """A person should look."""
    return _make(CheckStatus.WARNING, code, row, message, remedy, example_ids)


def judge_part(
    code: str, row: HandbookRow, message: str, *, remedy: str, example_ids: Sequence[str], num_all: int
) -> CheckResult:
    """A fault of single examples: failed from `FAILING_FRACTION` of all on, a warning below.

    Args:
        code: Of the check.
        row: Of the handbook.
        message: What is wrong with them.
        remedy: What to do.
        example_ids: All examples concerned, at least one.
        num_all: Examples that were looked at.
    """
    status = CheckStatus.FAILED if len(example_ids) >= FAILING_FRACTION * num_all else CheckStatus.WARNING
    return _make(status, code, row, message, remedy, example_ids)


def _make(
    status: CheckStatus,
    code: str,
    row: HandbookRow,
    message: str,
    remedy: str,
    example_ids: Sequence[str],
) -> CheckResult:
    return CheckResult(
        code=code,
        status=status,
        message=message,
        row=row,
        remedy=remedy,
        example_ids=tuple(example_ids[:MAX_LISTED_IDS]),
    )
