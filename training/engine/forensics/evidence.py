"""What an investigation gathers and what it concludes. No torch here."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from registry.artifacts.findings import shown

MAX_LISTED_EXAMPLES: Final = 64
MAX_LISTED_MODULES: Final = 20
MAX_TEXT_CHARS: Final = 300


class BadPart(StrEnum):
    """What was not finite."""

    LOSS = "loss"
    GRADIENT = "gradient norm"
    ACTIVATION = "activation"
    PARAMETER = "parameter"
    MOMENT = "optimiser moment"


class Cause(StrEnum):
    """Why, as far as the evidence goes."""

    FLOAT16_OVERFLOW = "float16-overflow"
    """Beyond float16's range (65504): the same step is finite in a wider format."""
    POISONED_EXAMPLE = "poisoned-example"
    """The step is finite without a few of its examples."""
    LEARNING_RATE = "learning-rate"
    """The training itself drove the weights there."""
    BASE_WEIGHTS = "base-weights"
    """The base holds such values, or gives them before any training."""
    OPTIMISER_STATE = "optimiser-state"
    """A stored state is damaged: training from the one before it does not give it."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleEvidence:
    """One example computed alone, with the weights from before the bad step.

    Attributes:
        example_id: Of the example.
        loss: Mean per trained token, in nats; may be infinite or NaN.
        gradient_norm: Of its mean loss over all trainable parameters; may be infinite or NaN.
        is_finite: Whether loss, gradient and the outputs of all modules are, and the gradient's square too,
            which the optimiser keeps.
        num_tokens: Its length.
        text: As the model sees it.
    """

    example_id: str
    loss: float
    gradient_norm: float
    is_finite: bool
    num_tokens: int
    text: str

    def to_json(self) -> dict[str, Any]:
        """Return JSON values; the text is cut and made harmless."""
        return {
            "example_id": shown(self.example_id),
            "loss": finite_or_none(self.loss),
            "gradient_norm": finite_or_none(self.gradient_norm),
            "is_finite": self.is_finite,
            "num_tokens": self.num_tokens,
            "text": shown_text(self.text),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleEvidence:
    """The gradient of one module's trainable parameters in the bad step; the norm may be infinite or NaN."""

    name: str
    gradient_norm: float

    @property
    def is_finite(self) -> bool:
        """Whether the gradient is finite."""
        return math.isfinite(self.gradient_norm)

    def to_json(self) -> dict[str, Any]:
        """Return JSON values."""
        return {
            "name": shown(self.name),
            "gradient_norm": finite_or_none(self.gradient_norm),
            "is_finite": self.is_finite,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything from which the cause is judged.

    Attributes:
        failed_step: Step at which the training noticed; None when that is not known.
        first_bad_step: First step with a number that is not finite; None when none was reached.
        what: The first such thing in that step; None likewise.
        dtype: Of the products, such as "float16".
        bad_base_tensors: Parameters that are not finite as loaded.
        largest_base_tensor: Name and magnitude of the largest value among the parameters as loaded.
        damaged_step: Step of a stored checkpoint that is not sound though training from the sound state
            before it does not make it so, or (see `limit`) was not seen to; None when there is none.
        bad_state_tensors: Trainables and moments in it that are not finite.
        examples: Of the bad step, each alone.
        sound_elsewhere: How many of a few other examples are finite with the same weights.
        num_elsewhere: How many were tried.
        bad_before_training: Ids of those bad examples that are bad with the untrained adapter too.
        is_finite_when_wide: Whether a step whose forward or backward pass is not finite is so in
            ``wide_dtype``; None when that was not tried.
        wide_dtype: Such as "float32".
        losses: (step, loss) of the steps before, ascending.
        gradient_norms: (step, norm) likewise, without steps that float16's scale left out.
        weight_growth: Norm of the trainable parameters before the bad step over that at the start; may be
            infinite or NaN.
        limit: Why the replay stopped before the failed step; "" when it did not.
    """

    failed_step: int | None
    first_bad_step: int | None
    what: BadPart | None
    dtype: str
    bad_base_tensors: tuple[str, ...]
    largest_base_tensor: tuple[str, float]
    damaged_step: int | None
    bad_state_tensors: tuple[str, ...]
    examples: tuple[ExampleEvidence, ...]
    sound_elsewhere: int
    num_elsewhere: int
    bad_before_training: frozenset[str]
    is_finite_when_wide: bool | None
    wide_dtype: str
    losses: tuple[tuple[int, float], ...]
    gradient_norms: tuple[tuple[int, float], ...]
    weight_growth: float
    limit: str

    @property
    def bad_examples(self) -> tuple[ExampleEvidence, ...]:
        """Those that are not finite by themselves."""
        return tuple(example for example in self.examples if not example.is_finite)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The likely cause, the evidence for it in words, and what to do first."""

    cause: Cause
    message: str
    treatment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotFiniteReport:
    """The outcome of an investigation.

    Attributes:
        evidence: What was seen.
        judgement: What it means.
        checkpoint_step: Step of the state from which the steps were repeated; 0 is the start.
        modules: Gradient norms per module in the bad step: those that are not finite first, from the loss
            backwards, then the largest.
        first_bad_module: The first module in forward order whose output is not finite; where all outputs are
            finite, the first in backward order whose gradient is not; None when all are.
    """

    evidence: Evidence
    judgement: Judgement
    checkpoint_step: int
    modules: tuple[ModuleEvidence, ...]
    first_bad_module: str | None

    def to_json(self) -> dict[str, Any]:
        """Return the record "not_finite"; every number in it is finite."""
        evidence = self.evidence
        return {
            "schema_version": 1,
            "step": evidence.failed_step,
            "what": evidence.what,
            "first_bad_step": evidence.first_bad_step,
            "checkpoint_step": self.checkpoint_step,
            "examples": [example.to_json() for example in worst_examples(evidence.examples)],
            "num_examples": len(evidence.examples),
            "modules": [module.to_json() for module in self.modules[:MAX_LISTED_MODULES]],
            "first_bad_module": None if self.first_bad_module is None else shown(self.first_bad_module),
            "losses": [[step, finite_or_none(value)] for step, value in evidence.losses],
            "gradient_norms": [[step, finite_or_none(value)] for step, value in evidence.gradient_norms],
            "cause": self.judgement.cause.value,
            "message": self.judgement.message,
            "treatment": self.judgement.treatment,
        }


def worst_examples(examples: Sequence[ExampleEvidence]) -> tuple[ExampleEvidence, ...]:
    """Return the bad examples, then the others by falling loss, at most `MAX_LISTED_EXAMPLES`."""
    ordered = sorted(examples, key=lambda example: (example.is_finite, -_sortable(example.loss)))
    return tuple(ordered[:MAX_LISTED_EXAMPLES])


def finite_or_none(value: float) -> float | None:
    """Return the value, or None where JSON has no number for it."""
    return value if math.isfinite(value) else None


def _sortable(value: float) -> float:
    return value if math.isfinite(value) else math.inf


def shown_text(text: str, limit: int = MAX_TEXT_CHARS) -> str:
    """Return foreign text with everything invisible made visible; a long one loses its middle, since a prompt
    often begins like all others and the answer stands at the end.
    """
    escaped = "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
    if len(escaped) <= limit:
        return escaped
    head = limit // 3
    return f"{escaped[:head]}…{escaped[len(escaped) - (limit - head - 1) :]}"
