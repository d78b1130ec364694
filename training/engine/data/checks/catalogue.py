"""All checks by name, in the order in which they are made."""

from collections.abc import Mapping
from typing import Final

from training.engine.data.checks import (
    answer_in_input,
    label_balance,
    misalignment,
    stock_phrases,
    template_tokens,
    truncation,
    uniformity,
)
from training.engine.data.checks.check import CheckKind

_MODULES = (
    template_tokens,
    misalignment,
    uniformity,
    label_balance,
    truncation,
    stock_phrases,
    answer_in_input,
)

CHECKS: Final[Mapping[str, CheckKind]] = {module.KIND.name: module.KIND for module in _MODULES}
