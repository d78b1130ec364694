"""Evidence that passes the default policy, to be spoiled in one place at a time."""

import copy
from collections.abc import Callable
from typing import Any

from evaluation.engine.gate.evidence import Evidence, Report
from evaluation.engine.metrics import aggregate_sets

NUM = 100
QUIET = {"never_stopped": False, "template_residue": False, "repetition": False, "preamble": False}

Rows = list[dict[str, Any]]


def row(role: str, number: int, form: str, **changes: Any) -> dict[str, Any]:
    base = {
        "example_id": f"{role}-{number}",
        "role": role,
        "form": form,
        "dimension": None,
        "output": "x",
        "finish_reason": "stop",
        "score": 1.0,
        "passed": True,
        "parse": "strict",
        "schema_valid": True,
        "fields": {},
        "behaviour": dict(QUIET),
        "details": {"verified": True},
    }
    return {**base, **changes}


def sample_rows(form: str, *, task_score: float, parse: str) -> Rows:
    rows = [
        row(
            role,
            i,
            form,
            score=task_score,
            passed=task_score == 1,
            parse=parse,
            schema_valid=parse == "strict",
        )
        for role in ("holdout", "ood")
        for i in range(NUM)
    ]
    for i in range(NUM):
        dimension = "chat" if i % 2 else "commonsense"
        finish = "stop" if i % 2 else "scored"
        rows.append(row("regression", i, form, dimension=dimension, finish_reason=finish, parse=None))
    rows.extend(row("canary", i, form, score=None, passed=None) for i in range(50))
    return rows


def report(form: str, rows: Rows, **changes: Any) -> Report:
    metrics = {
        "schema_version": 1,
        "subject": "baseline" if form == "base" else "candidate",
        "form": form,
        "chat_template_sha256": "ab" * 32,
        "sets": aggregate_sets(rows, form),
        "canary_parity": None,
        "leakage": {"status": "unknown", "pairs": []},
    }
    return Report(metrics={**metrics, **changes}, rows=rows)


def parity(**changes: Any) -> dict[str, Any]:
    counts = {
        "num_compared": 50,
        "num_agree": 49,
        "num_near_tie": 1,
        "num_diverged": 0,
        "num_refused": 0,
        "noise_floor_diverged": 0,
        "num_differ_from_base": 50,
        "diverged": [],
    }
    return {**counts, **changes}


def sample_evidence(
    change_candidate: Callable[[Rows], None] | None = None,
    change_baseline: Callable[[Rows], None] | None = None,
    **changes: Any,
) -> Evidence:
    """Return evidence that passes, after the rows were changed and the metrics computed from them.

    ``changes`` replace top-level metrics of the candidate.
    """
    candidate_rows = sample_rows("merged", task_score=1.0, parse="strict")
    baseline_rows = sample_rows("base", task_score=0.0, parse="unparsed")
    if change_candidate is not None:
        change_candidate(candidate_rows)
    if change_baseline is not None:
        change_baseline(baseline_rows)
    sound = {"canary_parity": parity(), "leakage": {"status": "checked", "pairs": []}}
    return Evidence(
        candidate=report("merged", candidate_rows, **{**sound, **changes}),
        baseline=report("base", baseline_rows),
        min_score=0.8,
    )


def fail_first(rows: Rows, role: str, num: int, **changes: Any) -> None:
    """Change the first ``num`` rows of a set."""
    chosen = [item for item in rows if item["role"] == role][:num]
    for item in chosen:
        item.update(copy.deepcopy(changes))
