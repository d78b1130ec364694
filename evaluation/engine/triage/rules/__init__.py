"""The rules that sort failures: each looks at a failed answer and says which lack it sees, with evidence."""

from collections.abc import Callable, Iterable
from typing import Final

from evaluation.engine.triage.rules.calculation import find_calculation
from evaluation.engine.triage.rules.capability import find_missing_capability
from evaluation.engine.triage.rules.facts import find_unknown_facts
from evaluation.engine.triage.rules.form import find_format
from evaluation.engine.triage.rules.style import find_style
from evaluation.engine.triage.signals import Case, Signal

RULES: Final[tuple[Callable[[Case], Iterable[Signal]], ...]] = (
    find_format,
    find_style,
    find_calculation,
    find_unknown_facts,
    find_missing_capability,
)
