"""All rules, in the order in which findings of one severity are told."""

from typing import Final

from training.engine.lint.findings import LintRule
from training.engine.lint.rules import adapter, data, lengths, memory, method, rates, steps

RULES: Final[tuple[LintRule, ...]] = (
    *method.RULES,
    *memory.RULES,
    *rates.RULES,
    *steps.RULES,
    *adapter.RULES,
    *lengths.RULES,
    *data.RULES,
)
