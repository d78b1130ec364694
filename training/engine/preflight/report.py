"""What a preflight found, and its document for the run. No torch here."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from registry.artifacts.findings import shown
from training.engine.errors import Fault
from training.engine.handbook.rows import HandbookRow

SCHEMA_VERSION: Final = 1
MAX_LISTED_IDS: Final = 5
MAX_DOCUMENT_BYTES: Final = 150_000
MAX_SHOWN_ROWS: Final = 16
"""Rows of one batch that are shown."""
_FIRST_LIMIT_CHARACTERS: Final = 8_000
_LAST_LIMIT_CHARACTERS: Final = 20


class CheckStatus(StrEnum):
    """How a check came out; what could not be checked is skipped, never passed."""

    PASSED = "passed"
    FAILED = "failed"
    WARNING = "warning"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What one check saw.

    Attributes:
        code: Stable kebab-case name of the check.
        status: A failed check stops the training; a warning asks a person to look.
        message: What was seen, with the numbers.
        row: Of the handbook; None where nothing is the matter.
        remedy: What to do; "" where nothing is needed.
        example_ids: The first few of the examples concerned.
    """

    code: str
    status: CheckStatus
    message: str
    row: HandbookRow | None = None
    remedy: str = ""
    example_ids: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the form used in the document; ids are made fit to be shown."""
        return {
            "code": self.code,
            "status": self.status.value,
            "message": self.message,
            "row": None if self.row is None else self.row.value,
            "remedy": self.remedy,
            "examples": [shown(name) for name in self.example_ids[:MAX_LISTED_IDS]],
        }


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of decoded tokens that are all trained, or all not."""

    text: str
    trained: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRow:
    """One row as the model gets it, decoded.

    Attributes:
        example_id: Of the row.
        segments: The whole row, special tokens included, padding left out.
        num_tokens: Without padding.
        num_trained_tokens: Tokens whose label is not -100.
        was_cut: Whether a segment's text is shortened here (the training sees all of it).
    """

    example_id: str
    segments: tuple[Segment, ...]
    num_tokens: int
    num_trained_tokens: int
    was_cut: bool = False

    def cut(self, limit: int) -> "ShownRow":
        """Return the row with longer texts cut in the middle to ``limit`` characters."""
        segments = tuple(Segment(cut_middle(part.text, limit), part.trained) for part in self.segments)
        return replace(self, segments=segments, was_cut=self.was_cut or segments != self.segments)

    def to_json(self) -> dict[str, Any]:
        """Return the form used in the document."""
        return {
            "example_id": shown(self.example_id),
            "segments": [{"text": part.text, "trained": part.trained} for part in self.segments],
            "num_tokens": self.num_tokens,
            "num_trained_tokens": self.num_trained_tokens,
            "was_cut": self.was_cut,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class OverfitResult:
    """How the few examples were learnt by heart.

    Attributes:
        status: "passed", "failed", or "known" when it passed before with this fingerprint and was left out.
        num_examples: Examples of the attempt; 0 when it was left out.
        num_steps: Optimiser steps done.
        losses: Mean loss per trained token over all examples before each step, and after the last, in nats.
        fingerprint: sha256 of what the attempt says something about.
    """

    status: str
    num_examples: int
    num_steps: int
    losses: tuple[float, ...]
    fingerprint: str

    def to_json(self) -> dict[str, Any]:
        """Return the form used in the document."""
        return {
            "status": self.status,
            "num_examples": self.num_examples,
            "num_steps": self.num_steps,
            "first_loss": self.losses[0] if self.losses else None,
            "last_loss": self.losses[-1] if self.losses else None,
            "losses": list(self.losses),
            "fingerprint": self.fingerprint,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStepResult:
    """What the first step measured; None where it could not be.

    Attributes:
        num_trainable: Trainable parameters.
        num_expected_trainable: As counted from the shapes of the adapted modules.
        num_without_gradient: Matrices that must learn from the first step on and have no gradient in it.
        saved_bytes_with_checkpointing: Bytes that the forward pass of one batch keeps for the backward pass,
            with checkpointing as configured; None when it is not configured.
        saved_bytes_without: Likewise, without checkpointing.
        accumulation_difference: Norm of the difference between the gradients of four rows in one batch and in
            four batches, relative to their norm.
    """

    num_trainable: int
    num_expected_trainable: int | None
    num_without_gradient: int | None
    saved_bytes_with_checkpointing: int | None
    saved_bytes_without: int | None
    accumulation_difference: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the form used in the document."""
        return {
            "num_trainable": self.num_trainable,
            "num_expected_trainable": self.num_expected_trainable,
            "num_without_gradient": self.num_without_gradient,
            "saved_bytes_with_checkpointing": self.saved_bytes_with_checkpointing,
            "saved_bytes_without": self.saved_bytes_without,
            "accumulation_difference": self.accumulation_difference,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightReport:
    """All that was tried out before the first step.

    Attributes:
        checks: In the order in which they were made.
        batches: The first batches, decoded.
        overfit: None when it was not come to.
        first_step: None when it was not come to.
    """

    checks: tuple[CheckResult, ...]
    batches: tuple[tuple[ShownRow, ...], ...] = ()
    overfit: OverfitResult | None = None
    first_step: FirstStepResult | None = None

    @property
    def failed(self) -> tuple[CheckResult, ...]:
        """The checks that stop the training."""
        return tuple(check for check in self.checks if check.status is CheckStatus.FAILED)

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failed

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The failed checks as faults; each names its row of the handbook as its place."""
        return tuple(
            Fault(
                code=check.code,
                message=check.message,
                where=f"handbook row {check.row.value}" if check.row else "",
                remedy=check.remedy,
            )
            for check in self.failed
        )

    def to_json(self) -> dict[str, Any]:
        """Return the document: at most 150 kB, for which long texts are cut in the middle."""
        batches = [list(batch[:MAX_SHOWN_ROWS]) for batch in self.batches]
        limit = _FIRST_LIMIT_CHARACTERS
        document = self._make_document(_cut_all(batches, limit))
        while _size(document) > MAX_DOCUMENT_BYTES and limit > _LAST_LIMIT_CHARACTERS:
            limit //= 2
            document = self._make_document(_cut_all(batches, limit))
        while _size(document) > MAX_DOCUMENT_BYTES and batches:
            batches.pop()
            document = self._make_document(_cut_all(batches, limit))
        return document

    def _make_document(self, batches: Iterable[Iterable[ShownRow]]) -> dict[str, Any]:
        return {
            "schema_version": SCHEMA_VERSION,
            "passed": self.passed,
            "checks": [check.to_json() for check in self.checks],
            "batches": [{"rows": [row.to_json() for row in batch]} for batch in batches],
            "overfit": None if self.overfit is None else self.overfit.to_json(),
            "first_step": None if self.first_step is None else self.first_step.to_json(),
        }


def cut_middle(text: str, limit: int) -> str:
    """Return a text of at most ``limit`` characters; a longer one loses its middle, which says so itself.

    Args:
        text: Of any length.
        limit: Characters, at least 3.
    """
    if len(text) <= limit:
        return text
    mark = f" … {len(text) - limit} characters more … "
    if len(mark) + 2 > limit:
        mark = "…"
    kept = limit - len(mark)
    head = (kept + 1) // 2
    return text[:head] + mark + text[len(text) - (kept - head) :]


def _cut_all(batches: Iterable[Iterable[ShownRow]], limit: int) -> list[list[ShownRow]]:
    return [[row.cut(limit) for row in batch] for batch in batches]


def _size(document: dict[str, Any]) -> int:
    """Bytes of the document where letters other than ASCII are escaped, its longest form."""
    return len(json.dumps(document))
