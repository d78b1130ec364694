"""The codes of the handbook's rows, and their classes. Stable: findings, incidents and checks refer to
them.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final


class SymptomClass(StrEnum):
    """Kinds of symptoms (handbook, core ideas), in the order of treatment (MISSION T5).

    Resource faults come first and numeric ones second, because they spoil every other observation.
    """

    RESOURCE = "resource"
    NUMERIC = "numeric"
    NOT_CONVERGING = "not-converging"
    BEHAVIOUR = "behaviour"


class HandbookRow(StrEnum):
    """Rows of the handbook.

    The first ten are those of its table (seed 000), in its order; then what the guide adds (seed 002,
    sections 4.3 and 6.1 to 6.3); the last four are faults of the pipeline that are found before the first
    step.
    """

    LOSS_FLAT = "loss-flat"
    LOSS_NEAR_ZERO = "loss-near-zero"
    LOSS_OSCILLATES = "loss-oscillates"
    LOSS_NOT_FINITE = "loss-not-finite"
    OUT_OF_MEMORY_AT_START = "out-of-memory-at-start"
    OUT_OF_MEMORY_LATER = "out-of-memory-later"
    NEVER_STOPS = "never-stops"
    TEMPLATE_TOKENS_IN_OUTPUT = "template-tokens-in-output"
    FORGETTING = "forgetting"
    WORSE_AFTER_MERGE = "worse-after-merge"

    HELD_OUT_RISES = "held-out-rises"
    GRADIENT_SMALL = "gradient-small"
    GRADIENT_CLIPPED_OFTEN = "gradient-clipped-often"
    THROUGHPUT_LOW = "throughput-low"
    PADDING_WASTE = "padding-waste"
    MEMORY_GROWS_AT_EVALUATION = "memory-grows-at-evaluation"
    REPETITION = "repetition"
    OFF_TOPIC = "off-topic"
    STYLE_DRIFT = "style-drift"
    LONG_INPUT_COLLAPSE = "long-input-collapse"
    FIELD_ALWAYS_WRONG = "field-always-wrong"

    WRONG_DATA = "wrong-data"
    CANNOT_OVERFIT = "cannot-overfit"
    NOT_TRAINABLE = "not-trainable"
    PACKING_LEAK = "packing-leak"

    @property
    def symptom_class(self) -> SymptomClass:
        """The class, which decides what is treated first."""
        return CLASSES[self]


_MEMBERS: Final[Mapping[SymptomClass, tuple[HandbookRow, ...]]] = MappingProxyType(
    {
        SymptomClass.RESOURCE: (
            HandbookRow.OUT_OF_MEMORY_AT_START,
            HandbookRow.OUT_OF_MEMORY_LATER,
            HandbookRow.MEMORY_GROWS_AT_EVALUATION,
            HandbookRow.THROUGHPUT_LOW,
            HandbookRow.PADDING_WASTE,
        ),
        SymptomClass.NUMERIC: (
            HandbookRow.LOSS_NOT_FINITE,
            HandbookRow.GRADIENT_SMALL,
            HandbookRow.GRADIENT_CLIPPED_OFTEN,
        ),
        SymptomClass.NOT_CONVERGING: (
            HandbookRow.LOSS_FLAT,
            HandbookRow.LOSS_NEAR_ZERO,
            HandbookRow.LOSS_OSCILLATES,
            HandbookRow.HELD_OUT_RISES,
            HandbookRow.WRONG_DATA,
            HandbookRow.CANNOT_OVERFIT,
            HandbookRow.NOT_TRAINABLE,
        ),
        SymptomClass.BEHAVIOUR: (
            HandbookRow.NEVER_STOPS,
            HandbookRow.TEMPLATE_TOKENS_IN_OUTPUT,
            HandbookRow.FORGETTING,
            HandbookRow.WORSE_AFTER_MERGE,
            HandbookRow.REPETITION,
            HandbookRow.OFF_TOPIC,
            HandbookRow.STYLE_DRIFT,
            HandbookRow.LONG_INPUT_COLLAPSE,
            HandbookRow.FIELD_ALWAYS_WRONG,
            HandbookRow.PACKING_LEAK,
        ),
    }
)

CLASSES: Final[Mapping[HandbookRow, SymptomClass]] = MappingProxyType(
    {row: symptom_class for symptom_class, rows in _MEMBERS.items() for row in rows}
)
"""The class of every row."""
