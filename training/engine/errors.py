"""Errors of the training engine: a stable ``code`` and a message that says what, where and what to do."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault among possibly several.

    Attributes:
        code: Stable kebab-case identifier.
        message: What is wrong, in one sentence.
        where: The place, for example ``train.jsonl line 17`` or ``training.learning_rate``.
        remedy: What to do about it; empty when the message says it already.
    """

    code: str
    message: str
    where: str = ""
    remedy: str = ""


class TrainingEngineError(Exception):
    """Base of every expected error of the training engine.

    Args:
        code: Stable kebab-case identifier, part of the interface.
        message: Human text: what, where, what to do.
        faults: All faults found, when there can be several.
    """

    def __init__(self, code: str, message: str, *, faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.faults = tuple(faults)


class BaseModelUnavailable(TrainingEngineError):
    """A base model cannot be built or read on this machine."""


class ConfigInvalid(TrainingEngineError):
    """A training configuration has one or more faults; ``faults`` lists all of them."""


class DataInvalid(TrainingEngineError):
    """A JSONL file or its examples cannot be used; ``faults`` lists all of them."""


class ChatTemplateUnsuitable(TrainingEngineError):
    """The chat template cannot be split into a prompt and an answer span."""


class TrainingFailed(TrainingEngineError):
    """Training stopped: a loss not finite, an untrained matrix, an adapter that does not read back."""


class NotFinite(TrainingFailed):
    """The loss or the gradient of a step is infinite or no number.

    Args:
        what: "loss" or "gradient norm".
        step: The optimiser step, from 1.
        example_ids: Of the rows that were computed when it was seen.
    """

    def __init__(self, *, what: str, step: int, example_ids: Sequence[str]) -> None:
        super().__init__(
            "loss-not-finite",
            f"The {what} is not finite in step {step}; the examples of it are "
            f"{', '.join(example_ids[:20])}. Lower the learning rate and look at these examples; the adapter "
            "was not saved.",
        )
        self.what = what
        self.step = step
        self.example_ids = tuple(example_ids)


class MergeRefused(TrainingEngineError):
    """The adapter does not fit the base, or asks for something that is not merged exactly."""


class MergeFailed(TrainingEngineError):
    """The merge produced something that its own checks do not accept."""
