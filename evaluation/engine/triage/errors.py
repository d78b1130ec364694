"""Errors of the triage."""

from evaluation.engine.errors import EvaluationError


class TriageInvalid(EvaluationError):
    """Samples, prompts or settings of a triage cannot be used; ``faults`` holds all of them."""
