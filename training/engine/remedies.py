"""The remedies for forgetting as changes of a configuration, in the order they are tried in (MISSION F8).

Pure functions: which data a run gets is decided by whoever starts it, with `count_general_rows`.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from training.engine.config import TrainingConfig
from training.engine.errors import ConfigInvalid
from training.engine.layer_choice import LAST_TWO_THIRDS

RAISED_GENERAL_FRACTION: Final = 0.15
"""MISSION F8: more general data, from 5 % to 15 %."""
LOWER_RATE_FACTOR: Final = 0.5
"""Handbook (seed 000): halve the learning rate."""


class Remedy(StrEnum):
    """A remedy, the first to be tried first."""

    MORE_GENERAL_DATA = "more-general-data"
    LOWER_RATE = "lower-rate"
    FEWER_EPOCHS = "fewer-epochs"
    LAST_TWO_THIRDS = "last-two-thirds"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedConfig:
    """A configuration after a remedy.

    Attributes:
        config: The whole of it.
        what: What was changed, in a sentence with the numbers.
    """

    config: TrainingConfig
    what: str


def apply_remedy(config: TrainingConfig, remedy: Remedy) -> ChangedConfig:
    """Return the configuration with the remedy. More general data leaves it as it is.

    Raises:
        ConfigInvalid: ``remedy-not-applicable`` when it changes nothing or its opposite would be meant.
    """
    match remedy:
        case Remedy.MORE_GENERAL_DATA:
            what = f"{RAISED_GENERAL_FRACTION:.0%} of the examples are general instruction data."
            return ChangedConfig(config=config, what=what)
        case Remedy.LOWER_RATE:
            return _lower_rate(config)
        case Remedy.FEWER_EPOCHS:
            return _fewer_steps(config) if config.training.max_steps is not None else _fewer_epochs(config)
        case Remedy.LAST_TWO_THIRDS:
            return _last_two_thirds(config)


def count_general_rows(*, num_task: int, num_general: int, fraction: float = RAISED_GENERAL_FRACTION) -> int:
    """Return how many general examples must be added so that they are a fraction of all.

    The smallest g with g / (num_task + g) >= fraction, less those that are there; 0 when there are enough.

    >>> count_general_rows(num_task=850, num_general=50)
    100

    Args:
        num_task: Examples of the task.
        num_general: General ones so far.
        fraction: Wanted part of all, 0-1, below 1.

    Raises:
        ValueError: ``fraction`` is not in that range.
    """
    if not 0.0 <= fraction < 1.0:
        raise ValueError(f"a fraction of at least 0 and below 1 is needed, not {fraction}")
    # The small number keeps 0.15 * 850 / 0.85 = 150.00000000000003 from being rounded up.
    wanted = math.ceil(fraction * num_task / (1.0 - fraction) - 1e-9)
    return max(0, wanted - num_general)


def _lower_rate(config: TrainingConfig) -> ChangedConfig:
    before = config.training.learning_rate
    rate = before * LOWER_RATE_FACTOR
    training = replace(config.training, learning_rate=rate)
    what = f"The learning rate goes from {before:g} to {rate:g}."
    return ChangedConfig(config=replace(config, training=training), what=what)


def _fewer_epochs(config: TrainingConfig) -> ChangedConfig:
    before = config.training.num_epochs
    if before <= 1:
        raise _not_applicable(
            f"num_epochs is {before:g}: with less than one pass some of the data would never be trained on. "
            "Lower the learning rate instead."
        )
    num_epochs = max(1.0, before - 1)
    training = replace(config.training, num_epochs=num_epochs)
    what = f"The passes over the data go from {before:g} to {num_epochs:g}."
    return ChangedConfig(config=replace(config, training=training), what=what)


def _fewer_steps(config: TrainingConfig) -> ChangedConfig:
    before = config.training.max_steps or 0
    if before < 2:
        raise _not_applicable("max_steps is 1; there is nothing to take away.")
    training = replace(config.training, max_steps=before // 2)
    what = f"max_steps, which decides the length of this run, goes from {before} to {before // 2}."
    return ChangedConfig(config=replace(config, training=training), what=what)


def _last_two_thirds(config: TrainingConfig) -> ChangedConfig:
    if config.method == "full":
        raise _not_applicable("Full fine-tuning has no LoRA whose layers could be restricted.")
    if config.lora.layers is not None:
        raise _not_applicable("lora.layers restricts the LoRA already; choose a smaller range by hand.")
    lora = replace(config.lora, layers=LAST_TWO_THIRDS)
    what = "The LoRA goes from all blocks to the last two thirds."
    return ChangedConfig(config=replace(config, lora=lora), what=what)


def _not_applicable(message: str) -> ConfigInvalid:
    return ConfigInvalid("remedy-not-applicable", message)
