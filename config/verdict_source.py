"""How trained adapters were judged, for the comparison of training runs.

Here, above both applications: the training may not know the evaluation.
"""

from collections.abc import Sequence
from typing import Any

from evaluation.models import Decision
from registry.choices import DatasetRole
from training.selectors.comparison import VERDICT_SOURCES, VerdictRows


def register_verdict_source() -> None:
    """Lets the comparison of training runs show verdicts; called once when the web process starts."""
    if list_verdicts not in VERDICT_SOURCES:
        VERDICT_SOURCES.append(list_verdicts)


def list_verdicts(digests: Sequence[str]) -> VerdictRows:
    """The newest decision on each adapter, and the scores behind it.

    Args:
        digests: Of the adapters' artifacts.
    """
    rows: dict[str, dict[str, str | float | None]] = {}
    decisions = Decision.objects.filter(run__version__artifact_id__in=digests).select_related("run__version")
    for decision in decisions.order_by("created_at"):
        digest = decision.run.version.artifact_id if decision.run.version else None
        if digest is None:
            continue
        for name, value in _describe(decision).items():
            rows.setdefault(name, {})[digest] = value
    return rows


def _describe(decision: Decision) -> dict[str, str | float | None]:
    sets: dict[str, Any] = (decision.run.metrics or {}).get("sets", {})
    described: dict[str, str | float | None] = {"verdict": decision.verdict}
    for role in (DatasetRole.HOLDOUT, DatasetRole.OOD):
        described[f"{role} score"] = sets.get(role, {}).get("score")
    for name, dimension in sets.get(DatasetRole.REGRESSION, {}).get("dimensions", {}).items():
        described[f"regression / {name}"] = dimension.get("score")
    return described
