"""What a rule saw, and the finding that is told about it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from registry.artifacts.findings import Severity
from training.engine.handbook.lookup import get_treatment
from training.engine.handbook.rows import HandbookRow, SymptomClass

_CLASS_ORDER: Final = tuple(SymptomClass)
_SEVERITY_ORDER: Final = (Severity.ERROR, Severity.WARNING, Severity.INFO)
_SPOILING: Final = (SymptomClass.RESOURCE, SymptomClass.NUMERIC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A symptom that was recognised.

    Attributes:
        code: Of the rule, such as "monitor/loss-flat"; stable.
        row: Of the handbook.
        severity: error when the run or its result cannot be used, warning when it is likely to disappoint,
            info when it only explains.
        step: The step at which the symptom begins, from 1; 0 when it is not one of a step.
        message: One sentence with the numbers.
        evidence: The numbers by name; finite.
        treatment: What to do first, in English; "" stands for the row's first treatment.
    """

    code: str
    row: HandbookRow
    severity: Severity
    step: int
    message: str
    evidence: Mapping[str, float] = field(default_factory=dict)
    treatment: str = ""

    def __post_init__(self) -> None:
        if not self.treatment:
            object.__setattr__(self, "treatment", get_treatment(self.row))

    @property
    def symptom_class(self) -> SymptomClass:
        """The class of the row."""
        return self.row.symptom_class

    @property
    def spoils_observation(self) -> bool:
        """Whether other symptoms mean little while it lasts (handbook: OOM and NaN are mended first)."""
        return self.severity is Severity.ERROR and self.symptom_class in _SPOILING

    def to_json(self) -> dict[str, Any]:
        """Return the document "finding"."""
        return {
            "code": self.code,
            "row": self.row.value,
            "class": self.symptom_class.value,
            "severity": self.severity.value,
            "step": self.step,
            "message": self.message,
            "evidence": dict(self.evidence),
            "treatment": self.treatment,
        }


def order_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Sort by the order of treatment: resource, numeric, the rest; then the weightiest, then the earliest."""
    return sorted(
        findings,
        key=lambda finding: (
            min(_CLASS_ORDER.index(finding.symptom_class), len(_SPOILING)),
            _SEVERITY_ORDER.index(finding.severity),
            finding.step,
            finding.code,
        ),
    )


def split_held_back(
    findings: Iterable[Finding], *, known: Iterable[Finding] = ()
) -> tuple[list[Finding], list[Finding]]:
    """Divide findings, in the order of treatment, into those to tell and those to hold back.

    While a resource or numeric fault of severity error is open, the others are held back: they may be its
    consequences (handbook: it pollutes every observation; MISSION T5).

    Args:
        findings: The new ones.
        known: Those told before, whose faults are still open.
    """
    ordered = order_findings(findings)
    if not any(finding.spoils_observation for finding in (*known, *ordered)):
        return ordered, []
    told = [finding for finding in ordered if finding.symptom_class in _SPOILING]
    return told, [finding for finding in ordered if finding.symptom_class not in _SPOILING]
