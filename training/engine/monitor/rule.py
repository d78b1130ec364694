"""What a rule of the monitor is."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from training.engine.monitor.findings import Finding
from training.engine.monitor.history import RunHistory


class Moment(StrEnum):
    """When a rule looks."""

    STEP = "step"
    HELD_OUT = "held-out"


@dataclass(frozen=True, slots=True)
class StepRule:
    """One rule: a pure function of what was seen so far.

    Attributes:
        codes: Of the findings that it may give; each is told once.
        source: Requirement behind it.
        moment: When it looks.
        check: Returns a finding, None while there is nothing to say. It may return the same again.
        needs_start: Whether it can only judge when the first step of the run was seen.
    """

    codes: tuple[str, ...]
    source: str
    moment: Moment
    check: Callable[[RunHistory], Finding | None]
    needs_start: bool = False
