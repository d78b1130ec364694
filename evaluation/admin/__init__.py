"""Admin pages of the evaluation app."""

from evaluation.admin import decisions, runs, suites, triages

__all__ = ["decisions", "runs", "suites", "triages"]
