"""What a rule says of a failed answer, and what it may look at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluation.engine.triage.judging import JudgedAnswer
from evaluation.engine.triage.kinds import FailureKind
from evaluation.engine.triage.values import LabelSpace


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One rule's word for a kind of failure.

    Attributes:
        kind: What the answer lacks by this rule.
        code: Stable kebab-case name of what was seen.
        confidence: 0-1. From 0.8 on the rule is hardly ever wrong; under 0.5 it needs a person.
        message: The evidence in one sentence.
        evidence: The same as values; JSON.
    """

    kind: FailureKind
    code: str
    confidence: float
    message: str
    evidence: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Return the stored form."""
        return {
            "kind": self.kind.value,
            "code": self.code,
            "confidence": self.confidence,
            "message": self.message,
            "evidence": dict(self.evidence),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelRecord:
    """How the model does on one field that is a choice among labels, over all samples.

    Attributes:
        num_answers: Samples whose answer has the field.
        num_right: Of those, right ones.
        num_labels: Labels to choose from.
        commonest_fraction: Share (0-1) of the commonest answer among the answers.
        is_chance: Whether guessing would do as well: the number of right answers is within what guessing
            reaches in one of twenty times.
    """

    num_answers: int
    num_right: int
    num_labels: int
    commonest_fraction: float
    is_chance: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A failed answer and what is known beside it.

    Attributes:
        judged: The answer.
        space: The task's labels.
        labels: Field (general path) to how the model does on it over all samples.
    """

    judged: JudgedAnswer
    space: LabelSpace
    labels: Mapping[str, LabelRecord]
