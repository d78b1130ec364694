"""Reads triages, their samples, and the verdict as it stands now."""

import re
import uuid
from dataclasses import dataclass

from django.contrib.auth.models import User
from django.db.models import Count, Q, QuerySet

from evaluation.choices import ACTIVE_TRIAGE_STATES, TriageState
from evaluation.engine.triage.kinds import Outcome
from evaluation.engine.triage.verdict import SortedSample, TriageVerdict, reach_verdict
from evaluation.errors import EvaluationNotFound
from evaluation.models import Triage, TriageItem

_REVISION = re.compile(r"r(0|[1-9][0-9]{0,8})")
_OPEN = Q(items__confirmed_kind="") & ~Q(items__outcome=Outcome.PASSED.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageProgress:
    """How far people are: samples that need one (failed or unjudged), and those of them that have one."""

    num_needed: int
    num_confirmed: int


def list_triages(*, state: str | None = None) -> QuerySet[Triage]:
    """Triages, newest first, each with `num_failed_by_rules` and `num_open` (what waits for a person).

    Args:
        state: A `TriageState`; None does not filter.
    """
    rows = Triage.objects.select_related("base_model", "job", "created_by", "closed_by")
    if state is not None:
        rows = rows.filter(state=state)
    # Grouped queries do not take the order of the model's Meta.
    return rows.order_by("-created_at").annotate(
        num_failed_by_rules=Count("items", filter=Q(items__outcome=Outcome.FAILED.value)),
        num_open=Count("items", filter=_OPEN),
    )


def get_triage(triage_id: uuid.UUID) -> Triage:
    """One triage, as `list_triages` gives it.

    Raises:
        EvaluationNotFound: there is none of this id.
    """
    row = list_triages().filter(pk=triage_id).first()
    if row is None:
        raise EvaluationNotFound("triage-not-found", triage_id=str(triage_id))
    return row


def list_triage_items(triage: Triage) -> QuerySet[TriageItem]:
    """The samples of a triage in their order; none before its job has ended."""
    return triage.items.select_related("confirmed_by", "triage")


def get_triage_item(triage: Triage, position: int) -> TriageItem:
    """One sample of a triage; positions begin at 1.

    Raises:
        EvaluationNotFound: there is none at this position.
    """
    item = list_triage_items(triage).filter(position=position).first()
    if item is None:
        raise EvaluationNotFound("triage-item-not-found", triage_id=str(triage.pk), position=position)
    return item


def find_next_open_position(triage: Triage, *, after: int) -> int | None:
    """The position of the next sample that waits for a person, going round to the beginning; None when none
    does.
    """
    waiting = triage.items.filter(confirmed_kind="").exclude(outcome=Outcome.PASSED.value)
    positions = waiting.order_by("position").values_list("position", flat=True)
    following = positions.filter(position__gt=after).first()
    return positions.first() if following is None else following


def find_latest_word_of(triage: Triage, user: User) -> TriageItem | None:
    """The sample of which a person spoke last in a triage; None before the first."""
    return list_triage_items(triage).filter(confirmed_by=user).order_by("-confirmed_at", "-position").first()


def measure_progress(triage: Triage) -> TriageProgress:
    """How many of the samples that need a person have one."""
    needed = triage.items.exclude(outcome=Outcome.PASSED.value)
    return TriageProgress(num_needed=needed.count(), num_confirmed=needed.exclude(confirmed_kind="").count())


def current_verdict(triage: Triage) -> TriageVerdict | None:
    """The verdict out of what rules and people have said up to now; None before the samples are sorted."""
    samples = [
        SortedSample(
            sample_id=sample_id,
            outcome=Outcome(outcome),
            kind=rule_kind or None,
            confirmed=confirmed_kind or None,
        )
        for sample_id, outcome, rule_kind, confirmed_kind in triage.items.order_by("position").values_list(
            "sample_id", "outcome", "rule_kind", "confirmed_kind"
        )
    ]
    return reach_verdict(samples) if samples else None


def list_active_triage_ids() -> list[uuid.UUID]:
    """The ids of the triages whose job may still do something, oldest first."""
    rows = Triage.objects.filter(state__in=ACTIVE_TRIAGE_STATES)
    return list(rows.order_by("created_at").values_list("pk", flat=True))


def list_triage_ids_of_job(job_id: uuid.UUID) -> list[uuid.UUID]:
    """The ids of the triages of a job, oldest first."""
    rows = Triage.objects.filter(job_id=job_id)
    return list(rows.order_by("created_at").values_list("pk", flat=True))


def is_open(triage: Triage) -> bool:
    """Whether samples may be confirmed."""
    return triage.state == TriageState.SORTED


def revision_of_etag(etag: str) -> int | None:
    """The revision that an ETag names; None for a text that is no ETag of a sample."""
    found = _REVISION.fullmatch(etag)
    return int(found.group(1)) if found else None


def item_etag(item: TriageItem) -> str:
    """The sample's ETag without quotes: `r` and its revision."""
    return f"r{item.revision}"
