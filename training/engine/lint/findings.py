"""What the rules say, and what a rule is."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from registry.artifacts.findings import Severity
from training.engine.lint.plan import Fact, TrainingPlan


@dataclass(frozen=True, slots=True)
class Observation:
    """What a rule saw.

    Attributes:
        severity: error when the run would fail or its result could not be used, warning when it is likely to
            disappoint, info when it only explains.
        message: What is the matter, with the numbers.
        remedy: What to change.
    """

    severity: Severity
    message: str
    remedy: str


@dataclass(frozen=True, slots=True)
class LintRule:
    """One rule.

    Attributes:
        code: Stable kebab-case name, unique among all rules.
        source: Requirement behind it, such as "D2", or several with commas.
        where: The setting meant, such as "training.learning_rate"; the input meant where it is no setting.
        check: Returns what it saw, None when all is well. Run only when all of ``needs`` are known.
        needs: Facts that it cannot do without.
    """

    code: str
    source: str
    where: str
    check: Callable[[TrainingPlan], Observation | None]
    needs: frozenset[Fact] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class LintFinding:
    """One thing that is the matter with a planned training.

    Attributes:
        code: Of the rule.
        severity: See `Observation`.
        message: What is the matter, with the numbers.
        where: The setting or input meant.
        remedy: What to change.
        source: Requirement behind it, such as "MISSION D2".
    """

    code: str
    severity: Severity
    message: str
    where: str
    remedy: str
    source: str

    def to_json(self) -> dict[str, str]:
        """Return the form used in reports."""
        return {
            "code": self.code,
            "severity": self.severity.value,
            "message": self.message,
            "where": self.where,
            "remedy": self.remedy,
            "source": self.source,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class UncheckedRule:
    """A rule that was left out, and the facts that were missing, sorted."""

    code: str
    missing: tuple[Fact, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the form used in reports."""
        return {"code": self.code, "missing": [fact.value for fact in self.missing]}


@dataclass(frozen=True, slots=True, kw_only=True)
class LintReport:
    """All that the rules have to say.

    Attributes:
        findings: The weightiest first, then in the order of the catalogue.
        unchecked: Rules whose facts are unknown: no finding of theirs means nothing.
    """

    findings: tuple[LintFinding, ...]
    unchecked: tuple[UncheckedRule, ...]

    @property
    def has_errors(self) -> bool:
        """Whether the run would fail or its result could not be used."""
        return any(finding.severity is Severity.ERROR for finding in self.findings)

    def to_json(self) -> dict[str, Any]:
        """Return the form used in reports."""
        return {
            "findings": [finding.to_json() for finding in self.findings],
            "unchecked": [rule.to_json() for rule in self.unchecked],
        }


def warn(message: str, remedy: str) -> Observation:
    """Return an observation that a person should look at."""
    return Observation(Severity.WARNING, message, remedy)


def refuse(message: str, remedy: str) -> Observation:
    """Return an observation that makes the run useless."""
    return Observation(Severity.ERROR, message, remedy)


def explain(message: str, remedy: str) -> Observation:
    """Return an observation that only explains."""
    return Observation(Severity.INFO, message, remedy)
