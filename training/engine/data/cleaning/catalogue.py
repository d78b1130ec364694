"""All cleaning steps by name, and the order in which a recipe without any runs them."""

from collections.abc import Mapping
from typing import Final

from training.engine.data.cleaning import (
    canonical_json,
    duplicates,
    empty,
    language,
    lengths,
    normalise,
    repair_text,
    sensitive,
    stock_answers,
)
from training.engine.data.cleaning.step import StepKind

_MODULES = (
    repair_text,
    normalise,
    canonical_json,
    empty,
    language,
    stock_answers,
    sensitive,
    lengths,
    duplicates,
)

STEPS: Final[Mapping[str, StepKind]] = {kind.name: kind for module in _MODULES for kind in module.KINDS}

DEFAULT_STEPS: Final = (
    # Texts are brought into one form first, so that what is equal looks equal to the steps after.
    "repair_text",
    "normalise",
    "canonical_json",
    "drop_empty",
    "drop_wrong_language",
    "drop_stock_answers",
    "screen_sensitive",
    # Duplicates before lengths: a text that stands a thousand times must not decide where the tail begins.
    "drop_duplicates",
    "limit_outputs",
    "cut_lengths",
)
