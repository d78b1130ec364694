"""What a check is: one pass over the examples, then findings with counts, ids and a remedy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from registry.artifacts.findings import Severity
from training.engine.data.examples import Example
from training.engine.settings_rules import Rule

MAX_LISTED_IDS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFinding:
    """One thing that a check has to say about a dataset.

    Attributes:
        code: Stable kebab-case name.
        severity: error (unfit for training or judging), warning (look at it), info.
        message: What is the matter, with the number that shows it.
        where: Field, tag or part meant, such as ``answer/urgency``; "" when the whole dataset is meant.
        remedy: What to do about it.
        num_examples: How many examples are concerned.
        example_ids: The first few of them.
        source: Requirement behind it, such as ``MISSION C7``.
    """

    code: str
    severity: Severity
    message: str
    where: str = ""
    remedy: str = ""
    num_examples: int = 0
    example_ids: tuple[str, ...] = ()
    source: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the form used in reports."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "where": self.where,
            "remedy": self.remedy,
            "num_examples": self.num_examples,
            "example_ids": list(self.example_ids),
            "source": self.source,
        }


class Check(Protocol):
    """One check at work on one dataset; keeps counts and few ids, never all examples."""

    def add(self, example: Example) -> None:
        """See one example."""

    def findings(self) -> tuple[DataFinding, ...]:
        """Return what was found, after the last ``add``; the weightiest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckKind:
    """A check as recipes name it; the attributes are those of a cleaning step's kind.

    Attributes:
        needs_source_order: Whether the check looks at the raw rows in their order; other checks look at the
            finished sets, which are cleaned, divided and shuffled.
    """

    name: str
    version: int
    summary: str
    source: str
    rules: Mapping[str, Rule] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    build: Callable[[Mapping[str, Any]], Check]
    needs_source_order: bool = False
