"""Tables of the evaluation app."""

from evaluation.models.decisions import Decision, Override, Policy
from evaluation.models.runs import EvaluationRun, ExampleResult
from evaluation.models.suites import Suite, SuiteDataset, SuiteVersion
from evaluation.models.triage import Triage, TriageItem

__all__ = [
    "Decision",
    "EvaluationRun",
    "ExampleResult",
    "Override",
    "Policy",
    "Suite",
    "SuiteDataset",
    "SuiteVersion",
    "Triage",
    "TriageItem",
]
