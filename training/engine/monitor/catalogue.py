"""All rules, in the order of treatment."""

from typing import Final

from training.engine.monitor.rule import StepRule
from training.engine.monitor.rules import gradients, loss, resources, start

RULES: Final[tuple[StepRule, ...]] = (*resources.RULES, *gradients.RULES, *start.RULES, *loss.RULES)

REPORTED_CODES: Final = (
    "monitor/out-of-memory-at-start",
    "monitor/out-of-memory-later",
    "monitor/out-of-memory-at-evaluation",
    "monitor/loss-not-finite",
)
"""Codes of findings about what the training itself reports."""
