"""Documents as the server gives them, for tests to start from."""

from typing import Any


def submission_document(**changes: Any) -> dict[str, Any]:
    """A submission as the server gives it, on its way."""
    document = {
        "id": "6f1d4d0e-8a5c-4f5a-9d55-0a4c5f2d1e01",
        "adapter": "tickets",
        "version": 3,
        "state": "submitted",
        "is_final": False,
        "verdict": None,
        "suite": "tickets@1",
        "policy": "default@1",
        "base_model": "tiny",
        "artifact": "0" * 64,
        "merged_artifact": None,
        "current_job": None,
        "findings": [],
        "failure": None,
        "decision": None,
        "metrics": None,
        "baseline_metrics": None,
        "created_at": "2026-01-02T03:04:05+00:00",
        "finished_at": None,
        "links": {"self": "/x", "report": "http://localhost/admin/report/3", "examples": "/y"},
    }
    return document | changes


def rule(name: str, outcome: str, **changes: Any) -> dict[str, Any]:
    """A rule's result as the server gives it."""
    return {
        "rule": name,
        "outcome": outcome,
        "observed": 0.9,
        "interval": [0.85, 0.94],
        "interval_method": "wilson",
        "threshold": 0.85,
        "num_examples": 120,
        "explanation": f"{name} is {outcome}",
        "example_ids": [],
        "parts": [],
    } | changes


def decided(verdict: str, *rules: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A submission with a verdict."""
    decision = {"verdict": verdict, "summary": f"{len(rules)} rules were looked at.", "rules": list(rules)}
    return (
        submission_document(
            state=verdict,
            is_final=True,
            verdict=verdict,
            decision=decision,
            finished_at="2026-01-02T03:05:05+00:00",
            metrics={
                "holdout": {
                    "num_examples": 120,
                    "score": 0.91,
                    "strict_parse_rate": 1.0,
                    "schema_valid_rate": 0.99,
                },
                "regression": {"dimensions": {"chat": {"num_examples": 30, "score": 0.5}}},
            },
            baseline_metrics={
                "holdout": {"num_examples": 120, "score": 0.2},
                "regression": {"dimensions": {"chat": {"num_examples": 30, "score": 0.6}}},
            },
        )
        | changes
    )
