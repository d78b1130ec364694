"""What all changes of the incident register share: the lock, new rows, the log, the compare-and-set."""

from collections.abc import Mapping
from typing import Any

from django.db.models import F
from django.utils import timezone

from registry.artifacts.digests import digest_json
from registry.services.actors import Actor
from registry.services.audit import record_audit
from training.choices import IncidentEntryKind, IncidentOpener
from training.errors import IncidentChanged
from training.models import Incident, IncidentEntry, Symptom, TrainingRun
from training.models.incidents import MAX_ACTOR_CHARACTERS
from training.selectors.incidents import find_recurrence, get_incident, incident_etag
from training.services.handbook import load_shipped_handbook


def lock_register() -> None:
    """Lets one process at a time open incidents, so that of two of one symptom the second sees the first.

    Call it in a transaction, after whatever lock on the run is needed. The handbook's first row stands for
    the register; a handbook that is empty still gets its shipped rows.
    """
    rows = Symptom.objects.select_for_update(no_key=True).order_by("pk")
    if rows.first() is None:
        load_shipped_handbook()
        rows.first()


def store_incident(
    *,
    symptom: Symptom | None,
    run: TrainingRun | None,
    opened_by: IncidentOpener,
    actor: Actor,
    **columns: Any,
) -> Incident:
    """Writes a new incident with its audit row and, for a symptom that recurs, the question for a check. Call
    it with the register locked.

    Raises:
        IntegrityError: the diagnosis has opened an incident of this run and symptom already.
    """
    now = timezone.now()
    incident = Incident.objects.create(
        symptom=symptom,
        training_run=run,
        opened_by=opened_by,
        created_by=actor.user,
        opened_at=now,
        fingerprint="" if run is None else fingerprint_of(run),
        configuration={} if run is None else describe_run(run),
        asks_for_check=symptom is not None and find_recurrence(symptom.code, at=now).asks_for_check,
        **columns,
    )
    after = {
        "title": incident.title,
        "symptom": incident.symptom_id,
        "run": None if run is None else str(run.pk),
    }
    record_audit(actor=actor, action="incident.open", target=incident, after=after)
    return incident


def fingerprint_of(run: TrainingRun) -> str:
    """The digest of what a run was told: bytes of base and data, configuration, version of the code.

    It is known before the run begins, so it stands in incidents of runs that never came to an end; equal
    digests mean equal tasks.
    """
    return run.job.cache_key if run.job is not None else digest_json(describe_run(run))


def describe_run(run: TrainingRun) -> dict[str, Any]:
    """What a run was told, spelled out, with the versions of the libraries once it has reported them."""
    reported = run.values.get("fingerprint")
    libraries = reported.get("libraries") if isinstance(reported, Mapping) else None
    return {
        "name": run.name,
        "purpose": str(run.purpose),
        "base_model": run.base_model.name,
        "datasets": sorted(str(item) for item in run.datasets.select_related("dataset")),
        "holdout": None if run.holdout is None else str(run.holdout),
        "code_version": run.job.code_version if run.job is not None else None,
        "libraries": libraries,
        "config": run.config,
    }


def log(
    incident: Incident, actor: Actor, kind: IncidentEntryKind, text: str, *, detector: str = ""
) -> IncidentEntry:
    """Adds a line to the log of an incident; call it in the transaction of the change."""
    return IncidentEntry.objects.create(
        incident=incident, actor=actor.name[:MAX_ACTOR_CHARACTERS], kind=kind, detector=detector, text=text
    )


def take_revision(incident: Incident, expected_revision: int, **columns: Any) -> None:
    """Changes columns of an incident that is still as it was seen.

    Raises:
        IncidentChanged: it has another revision by now.
    """
    rows = Incident.objects.filter(number=incident.number, revision=expected_revision, state=incident.state)
    if not rows.update(revision=F("revision") + 1, **columns):
        now = get_incident(incident.number)
        raise IncidentChanged(
            "incident-changed",
            number=now.number,
            state=now.state,
            etag=incident_etag(now),
            revision=now.revision,
        )
