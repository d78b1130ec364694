"""The words of a triage: what a failure lacks, what helps against it, and how a sample came out."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class FailureKind(StrEnum):
    """What a failed answer lacks (MISSION A1, guide section 1)."""

    FORMAT = "format"
    STYLE = "style"
    UNKNOWN_FACT = "unknown-fact"
    CALCULATION = "calculation"
    MISSING_CAPABILITY = "missing-capability"


class Treatment(StrEnum):
    """What helps against a kind of failure."""

    FINE_TUNE = "fine-tune"
    RETRIEVAL = "retrieval"
    CODE_OR_RULES = "code-or-rules"
    OTHER_BASE = "other-base"


class Outcome(StrEnum):
    """How a sample came out by the rules; ``unjudged``: only a person can say whether the answer is right."""

    PASSED = "passed"
    FAILED = "failed"
    UNJUDGED = "unjudged"


AMBIGUOUS: Final = "ambiguous"
"""The sorting of a failure on which the rules disagree, or about which they are not sure."""

CORRECT: Final = "correct"
"""A person's word for an answer that is right, whatever the rules said."""

CONFIRMABLE: Final = (*(kind.value for kind in FailureKind), CORRECT)
"""What a person may say of a sample."""

TREATMENT_OF: Final[Mapping[FailureKind, Treatment]] = {
    FailureKind.FORMAT: Treatment.FINE_TUNE,
    FailureKind.STYLE: Treatment.FINE_TUNE,
    FailureKind.UNKNOWN_FACT: Treatment.RETRIEVAL,
    FailureKind.CALCULATION: Treatment.CODE_OR_RULES,
    FailureKind.MISSING_CAPABILITY: Treatment.OTHER_BASE,
}
"""MISSION A1: format and style say fine-tune, facts retrieval, calculation code, a missing capability another
base.
"""
