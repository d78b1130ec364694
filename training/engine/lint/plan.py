"""A training as far as it is known before it runs, and the numbers that follow from it."""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from training.engine.config import TrainingConfig
from training.engine.data.distributions import LengthCounter
from training.engine.memory.model_shape import ModelShape

COMMON_LENGTH_FRACTION = 0.95
"""The quantile that the guide sets the maximum length to (MISSION D2)."""

_T = TypeVar("_T")


class Fact(StrEnum):
    """Something that a rule may need besides the configuration."""

    SHAPE = "shape"
    BASE_DTYPE = "base_dtype"
    ROWS = "rows"
    GENERAL = "general"
    LENGTHS = "lengths"
    TOO_LONG = "too_long"
    CARD = "card"
    HELD_OUT = "held_out"
    STEPS = "steps"
    PASSES = "passes"


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthFacts:
    """Lengths of the training rows in tokens, rendered with the chat template.

    Attributes:
        common_tokens: The 95th percentile.
        longest_tokens: The longest row.
        num_too_long: Rows above the configured maximum, which the trainer drops; None when not counted.
    """

    common_tokens: int
    longest_tokens: int
    num_too_long: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFacts:
    """The training data.

    Attributes:
        num_rows: All rows, the general ones and those that are too long included.
        general_fraction: Part that is general instruction data, 0-1; None when unknown.
        lengths: None when not measured.
    """

    num_rows: int
    general_fraction: float | None = None
    lengths: LengthFacts | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """What is to be judged; everything that is unknown is None, and rules that need it are left out.

    Attributes:
        config: The whole configuration.
        shape: Of the base model.
        base_dtype: Of the base's weights in torch's words, such as "float16".
        data: The training data.
        card_bytes: Memory of the card that trains; None also for training on a CPU.
        has_held_out: Whether there are held-out rows.
    """

    config: TrainingConfig
    shape: ModelShape | None = None
    base_dtype: str | None = None
    data: DataFacts | None = None
    card_bytes: float | None = None
    has_held_out: bool | None = None

    @property
    def known(self) -> frozenset[Fact]:
        """The facts that are known."""
        data = self.data
        lengths = data.lengths if data else None
        values = {
            Fact.SHAPE: self.shape,
            Fact.BASE_DTYPE: self.base_dtype,
            Fact.ROWS: data,
            Fact.GENERAL: data.general_fraction if data else None,
            Fact.LENGTHS: lengths,
            Fact.TOO_LONG: lengths.num_too_long if lengths else None,
            Fact.CARD: self.card_bytes,
            Fact.HELD_OUT: self.has_held_out,
            Fact.STEPS: self.num_steps,
            Fact.PASSES: self.num_passes,
        }
        return frozenset(fact for fact, value in values.items() if value is not None)

    @property
    def is_adapter(self) -> bool:
        """Whether an adapter is trained, not the whole model."""
        return self.config.method != "full"

    @property
    def effective_batch(self) -> int:
        """Rows per optimiser step."""
        training = self.config.training
        return training.per_device_batch_size * training.gradient_accumulation_steps

    @property
    def num_rows(self) -> int | None:
        """Rows that are trained on: those that are known to be too long left out."""
        if self.data is None:
            return None
        lengths = self.data.lengths
        return self.data.num_rows - ((lengths.num_too_long or 0) if lengths else 0)

    @property
    def num_steps(self) -> int | None:
        """Optimiser steps, as `training.engine.batches.count_steps` counts them."""
        training = self.config.training
        if training.max_steps is not None:
            return training.max_steps
        per_pass = self._steps_per_pass
        return None if per_pass is None else max(1, math.ceil(per_pass * training.num_epochs))

    @property
    def num_passes(self) -> float | None:
        """Passes over the data."""
        training = self.config.training
        if training.max_steps is None:
            return training.num_epochs
        per_pass = self._steps_per_pass
        return None if per_pass is None else training.max_steps / max(1, per_pass)

    @property
    def longest_row_tokens(self) -> int:
        """Tokens of the longest row that is trained on; the configured maximum when lengths are unknown."""
        limit = self.config.training.max_length_tokens
        lengths = self.data.lengths if self.data else None
        return limit if lengths is None else min(limit, lengths.longest_tokens)

    @property
    def _steps_per_pass(self) -> int | None:
        training = self.config.training
        if self.num_rows is None:
            return None
        num_batches = math.ceil(self.num_rows / training.per_device_batch_size)
        return math.ceil(num_batches / training.gradient_accumulation_steps)


def summarise_lengths(lengths: LengthCounter, *, max_length_tokens: int) -> LengthFacts | None:
    """Return what the rules need of counted lengths; None when nothing was counted."""
    common, longest = lengths.quantile(COMMON_LENGTH_FRACTION), lengths.quantile(1.0)
    if common is None or longest is None:
        return None
    return LengthFacts(
        common_tokens=common, longest_tokens=longest, num_too_long=lengths.count_above(max_length_tokens)
    )


def need(value: _T | None) -> _T:
    """Return a fact that the rule's row declares in ``needs``.

    Raises:
        LookupError: It is not known, so the row forgot to declare it.
    """
    if value is None:
        raise LookupError("A rule uses a fact that is missing in its `needs`.")
    return value
