"""What the page of a training run shows, put together for its templates."""

from collections.abc import Mapping
from typing import Any, Final

from django.urls import reverse

from training.admin.curves import (
    HEIGHT,
    MARGIN_BOTTOM,
    MARGIN_LEFT,
    MARGIN_RIGHT,
    MARGIN_TOP,
    WIDTH,
    Mark,
    build_charts,
    format_value,
)
from training.admin.following import flat_rows, job_context
from training.admin.memory_page import address_for_run
from training.admin.run_documents import mini_context, not_finite_context, preflight_context
from training.choices import ACTIVE_TRAINING_STATES, DocumentName, TrainingPurpose
from training.engine.remedies import Remedy
from training.models import TrainingRun
from training.selectors.comparison import ComparedRow, Comparison, compare_relatives
from training.selectors.incidents import list_incidents
from training.selectors.runs import get_curves, get_documents, get_verdict, list_findings

CHART_SIZE: Final[Mapping[str, float]] = {
    "width": WIDTH,
    "height": HEIGHT,
    "left": MARGIN_LEFT,
    "right": WIDTH - MARGIN_RIGHT,
    "top": MARGIN_TOP,
    "bottom": HEIGHT - MARGIN_BOTTOM,
}
REMEDY_LABELS: Final[Mapping[str, str]] = {
    Remedy.MORE_GENERAL_DATA.value: "15 % general data",
    Remedy.LOWER_RATE.value: "Half the learning rate",
    Remedy.FEWER_EPOCHS.value: "Fewer epochs",
    Remedy.LAST_TWO_THIRDS.value: "Last two thirds of the layers",
}
"""In the order in which they are tried (MISSION F8)."""


def live_context(run: TrainingRun) -> dict[str, Any]:
    """What changes while a run is under way: curves and findings."""
    findings = list_findings(run)
    marks = [
        Mark(step=finding.step, number=number, severity=finding.severity)
        for number, finding in enumerate(findings, start=1)
    ]
    return {
        "charts": build_charts(get_curves(run), marks),
        "chart_size": CHART_SIZE,
        "findings": [(number, finding) for number, finding in enumerate(findings, start=1)],
    }


def report_context(run: TrainingRun, *, may_submit: bool) -> dict[str, Any]:
    """The whole page of a run.

    Args:
        run: The run.
        may_submit: Whether whoever looks may cancel and vary runs.
    """
    documents = get_documents(run)
    is_active = run.state in ACTIVE_TRAINING_STATES
    may_vary = may_submit and not is_active and run.purpose == TrainingPurpose.TRAINING
    return {
        "title": f"Training of {run.name}",
        "run": run,
        "is_active": is_active,
        "verdict": get_verdict(run),
        "live_url": reverse("admin:training_trainingrun_live", args=(run.pk,)) if is_active else "",
        **job_context(run.job),
        **live_context(run),
        "preflight": preflight_context(documents.get(DocumentName.PREFLIGHT)),
        "not_finite": not_finite_context(documents.get(DocumentName.NOT_FINITE)),
        "mini": mini_context(documents.get(DocumentName.MINI)),
        "incidents": list_incidents(run=run),
        "may_open_incident": may_submit,
        "lint_findings": run.lint.get("findings", []),
        "lint_unchecked": run.lint.get("unchecked", []),
        "relatives": _relatives_context(run, compare_relatives(run)),
        "remedies": list(REMEDY_LABELS.items()) if may_vary else [],
        "config_rows": tuple(flat_rows(run.config)),
        "value_rows": tuple(flat_rows(run.values)),
        "memory_url": address_for_run(run),
        "user_may_cancel": is_active and may_submit,
    }


def _relatives_context(run: TrainingRun, comparison: Comparison) -> dict[str, Any] | None:
    if len(comparison.runs) < 2:
        return None
    parts = (
        ("Configuration and data", comparison.differences),
        ("Measured", comparison.measures),
        ("Judged", comparison.verdicts),
    )
    return {
        "columns": [
            {
                "name": item.name,
                "state": item.get_state_display(),
                "how": REMEDY_LABELS.get(item.remedy, item.remedy) or ("-" if item.parent_id is None else ""),
                "url": reverse("admin:training_trainingrun_report", args=(item.pk,)),
                "is_this": item.pk == run.pk,
            }
            for item in comparison.runs
        ],
        "parts": [(title, [_shown_row(row) for row in rows]) for title, rows in parts if rows],
        "findings": [", ".join(codes) or "none" for codes in comparison.findings],
        "num_columns": len(comparison.runs) + 1,
    }


def _shown_row(row: ComparedRow) -> tuple[str, list[str]]:
    return row.name, [_shown_value(value) for value in row.values]


def _shown_value(value: Any) -> str:
    if value is None:
        return "-"
    return format_value(value) if isinstance(value, float) else str(value)
