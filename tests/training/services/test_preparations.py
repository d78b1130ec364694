"""Preparations follow their job; its sets become dataset versions, all of them or none."""

import json
import uuid
from typing import Any

import pytest

from registry.errors import ScopeError
from registry.models import AuditEvent, Dataset, DatasetVersion, Job
from registry.services.actors import SYSTEM
from registry.services.datasets import ensure_dataset
from registry.services.jobs import claim_job, release_job
from tests.fixtures.evaluation import break_job, dataset_line, finish_job, make_dataset
from tests.fixtures.preparations import (
    finish_preparation,
    make_preparation,
    make_raw,
    prepared_files,
    request_for,
    set_card,
)
from tests.fixtures.registry import jsonl, make_base_model, make_caller, store_files
from training.choices import PREPARATION_TRANSITIONS, PreparationState
from training.errors import TrainingConflict, TrainingInvalid
from training.models import DataPreparation, PreparedSet
from training.selectors.preparations import find_preparation_of, read_card, read_first_rows, read_report
from training.services import preparations
from training.services.preparations import (
    cancel_preparation,
    create_preparation,
    on_job_finished,
    reconcile_all,
    retry_preparation,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def job_of(row: DataPreparation) -> Job:
    row.refresh_from_db()
    assert row.job is not None
    return row.job


def make_tokenizer_model() -> None:
    row = make_base_model()
    row.artifact = store_files({"config.json": b"{}", "tokenizer.json": b"{}"}, kind="base_model")
    row.save()


def test_the_job_gets_every_input() -> None:
    make_tokenizer_model()
    for name, role in (("general", "general"), ("short", "train"), ("tickets-ood", "ood")):
        make_dataset(name, role, num=3)
    row = make_preparation(
        recipe={"mix": {"general_fraction": 0.1, "unchanged_fraction": 0.1}},
        general="general@1",
        unchanged="short@1",
        evaluation_sets=["tickets-ood@1", "tickets-ood@1"],
        base_model_name="tiny",
    )
    job = job_of(row)
    assert (job.kind, job.queue, job.code_version, row.state) == ("prepare", "cpu", "prepare@1", "queued")
    assert set(job.inputs) == {"sources", "general", "unchanged", "evaluation_sets", "tokenizer"}
    assert list(job.inputs["evaluation_sets"]["files"]) == ["tickets-ood@1.jsonl"]
    assert job.config == row.recipe
    assert row.recipe["role"] == "train"


def test_sets_become_dataset_versions() -> None:
    row = make_preparation()
    job = finish_preparation(row)
    on_job_finished(job_id=job.pk)
    row.refresh_from_db()
    assert (row.state, row.report_id, row.values) == ("succeeded", job.output_artifact_id, {"num_rows": 12})
    assert [(it.role, str(it.dataset_version), it.num_examples) for it in row.sets.all()] == [
        ("train", "tickets@1", 8),
        ("holdout", "tickets-holdout@1", 2),
    ]
    version = DatasetVersion.objects.get(dataset__name="tickets")
    assert version.card["preparation"] == str(row.pk)
    assert version.card["raw"]["artifact"] == row.raw.artifact_id
    assert version.card["recipe_digest"] == "d" * 64
    assert version.card["lengths"] == set_card(8)["lengths"]
    # The registry's own count has precedence over the card of the same name.
    assert version.card["tags"] == {}
    assert find_preparation_of(version) == row
    assert read_report(row)["code_version"] == "prepare@1"
    assert read_card(row) == "# tickets\n"


def test_the_person_who_asked_owns_the_versions() -> None:
    caller = make_caller("evaluate")
    row = create_preparation(request=request_for(make_raw()), actor=caller.actor)
    on_job_finished(job_id=finish_preparation(row).pk)
    assert DatasetVersion.objects.get(dataset__name="tickets").created_by == caller.user


def test_registering_twice_gives_the_same_versions() -> None:
    first = make_preparation()
    finish_preparation(first)
    reconcile_all()
    again = make_preparation(raw=first.raw)
    again.refresh_from_db()
    assert (again.state, Job.objects.count(), DatasetVersion.objects.count()) == ("succeeded", 1, 2)
    assert {it.dataset_version_id for it in again.sets.all()} == {
        it.dataset_version_id for it in first.sets.all()
    }


def test_killed_half_way_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    row = make_preparation()
    job = finish_preparation(row)
    store, stored = preparations.store_dataset_version, []

    def kill_at_the_second(**options: Any) -> Any:
        stored.append(store(**options))
        if len(stored) == 2:
            raise KeyboardInterrupt
        return stored[-1]

    monkeypatch.setattr(preparations, "store_dataset_version", kill_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        on_job_finished(job_id=job.pk)
    row.refresh_from_db()
    assert (row.state, len(stored)) == ("queued", 2)
    assert not DatasetVersion.objects.exists() and not PreparedSet.objects.exists()
    monkeypatch.setattr(preparations, "store_dataset_version", store)
    reconcile_all()
    reconcile_all()
    row.refresh_from_db()
    assert (row.state, DatasetVersion.objects.count(), PreparedSet.objects.count()) == ("succeeded", 2, 2)


def test_a_set_that_is_no_dataset_fails_the_preparation() -> None:
    row = make_preparation()
    finish_preparation(row, prepared_files({"train": b'{"id": "a"}\n'}))
    reconcile_all()
    row.refresh_from_db()
    assert row.failure is not None
    assert (row.state, row.failure["failure_class"], row.failure["code"]) == (
        "failed",
        "user",
        "dataset-invalid",
    )
    assert row.failure["details"][0]["where"] == "data.jsonl line 1"
    assert not Dataset.objects.exists()


def test_a_role_that_changed_while_the_job_ran() -> None:
    row = make_preparation()
    ensure_dataset(name="tickets-holdout", role="ood", actor=SYSTEM)
    finish_preparation(row)
    reconcile_all()
    row.refresh_from_db()
    assert row.failure is not None
    assert (row.state, row.failure["code"]) == ("failed", "dataset-role-differs")
    assert not DatasetVersion.objects.exists()
    Dataset.objects.all().delete()
    retried = retry_preparation(preparation=row, actor=SYSTEM)
    assert (retried.state, retried.failure, Job.objects.count()) == ("succeeded", None, 1)


@pytest.mark.parametrize(
    ("files", "code"),
    [
        ({"report.json": b"[]"}, "report-unreadable"),
        ({"report.json": b"{}"}, "report-unreadable"),
        ({"report.json": b'{"sets": {"secret": {}}}'}, "report-unreadable"),
        ({"report.json": b"\xff"}, "report-unreadable"),
        ({"report.json": b'{"sets": {"train": {}}}'}, "prepared-incomplete"),
        ({"card.md": b""}, "report-unreadable"),
    ],
)
def test_output_that_is_ours_to_mend(files: dict[str, bytes], code: str) -> None:
    row = make_preparation()
    finish_preparation(row, files)
    reconcile_all()
    row.refresh_from_db()
    assert row.failure is not None
    assert (row.state, row.failure["code"], row.failure["failure_class"]) == ("failed", code, "internal")


def test_success_without_an_output() -> None:
    row = make_preparation()
    finish_job(job_of(row))
    reconcile_all()
    row.refresh_from_db()
    assert row.failure is not None
    assert row.failure["code"] == "prepared-missing"


def test_states_of_the_job() -> None:
    row = make_preparation()
    claim = claim_job(job_id=job_of(row).pk, worker="w")
    assert claim is not None
    reconcile_all()
    row.refresh_from_db()
    assert row.state == "running"
    release_job(claim=claim)
    reconcile_all()
    row.refresh_from_db()
    assert row.state == "queued"
    break_job(job_of(row), failure_class="user", code="no-examples", message="No row could be read.")
    reconcile_all()
    row.refresh_from_db()
    assert row.failure is not None
    assert (row.state, row.failure["code"]) == ("failed", "no-examples")
    retried = retry_preparation(preparation=row, actor=SYSTEM)
    assert (retried.state, Job.objects.count()) == ("queued", 2)
    with pytest.raises(TrainingConflict, match="only a failed"):
        retry_preparation(preparation=row, actor=SYSTEM)
    actions = AuditEvent.objects.filter(object_id=str(row.pk)).order_by("id").values_list("action", flat=True)
    assert list(actions) == [
        "preparation.create",
        "preparation.running",
        "preparation.queued",
        "preparation.failed",
        "preparation.queued",
    ]


def test_cancel() -> None:
    raw = make_raw()
    row, twin = make_preparation(raw=raw), make_preparation(raw=raw)
    actor = make_caller("evaluate").actor
    cancel_preparation(preparation=row, actor=actor)
    assert job_of(twin).state == "queued"
    assert cancel_preparation(preparation=twin, actor=actor).state == "cancelled"
    assert job_of(twin).state == "cancelled"
    reconcile_all()
    with pytest.raises(TrainingConflict, match="already"):
        cancel_preparation(preparation=row, actor=SYSTEM)


def test_all_faults_at_once() -> None:
    make_base_model()
    ensure_dataset(name="tickets", role="ood", actor=SYSTEM)
    make_dataset("general", "general", num=2)
    request = request_for(
        make_raw(),
        raw_data="ticket-lgo",
        recipe={"split": {"holdout_fraction": 0.1}},
        general="general@1",
        unchanged="nothing@1",
        evaluation_sets=["general@1", "no reference"],
        base_model_name="tiny",
    )
    with pytest.raises(TrainingInvalid) as caught:
        create_preparation(request=request, actor=SYSTEM)
    assert [(fault.where, fault.code) for fault in caught.value.faults] == [
        ("/raw_data", "raw-data-not-found"),
        ("/name", "dataset-role-differs"),
        ("/unchanged", "dataset-version-not-found"),
        ("/evaluation_sets/0", "dataset-role-differs"),
        ("/evaluation_sets/1", "reference-invalid"),
        ("/base_model", "tokenizer-missing"),
        ("/general", "general-unused"),
        ("/unchanged", "unchanged-unused"),
    ]
    assert "ticket-log" in caught.value.faults[0].message
    assert not DataPreparation.objects.exists()


def test_faults_of_the_recipe_have_their_places() -> None:
    recipe = {"clean": [{"step": "drop_duplicates", "threshold": 7}], "role": "none", "clea": []}
    with pytest.raises(TrainingInvalid) as caught:
        make_preparation(recipe=recipe)
    assert {"/recipe/clea", "/recipe/role", "/recipe/clean/0/threshold"} <= {
        fault.where for fault in caught.value.faults
    }


def test_mix_without_data() -> None:
    with pytest.raises(TrainingInvalid) as caught:
        make_preparation(recipe={"mix": {"general_fraction": 0.1}})
    assert [(fault.where, fault.code) for fault in caught.value.faults] == [("/general", "general-missing")]


def test_names() -> None:
    with pytest.raises(TrainingInvalid) as caught:
        make_preparation(name="x" * 90)
    # 90 characters are a name, but 98 with "-holdout" are none.
    assert [fault.code for fault in caught.value.faults] == ["name-invalid"]
    assert make_preparation(name="x" * 90, recipe={}).state == "queued"


def test_the_newest_raw_data_of_a_name() -> None:
    make_raw()
    newer = make_raw(files={"b.csv": b"a,b\n1,2\n"})
    assert make_preparation(raw=newer, raw_data="ticket-log").raw == newer


def test_first_rows() -> None:
    row = make_preparation()
    long = json.dumps({"row": 2, "text": "x" * 70_000}).encode()
    rows = b'{"row": 1}\n' + long + b'\n{"row": 3}\n{"row": 4}\n'
    finish_preparation(row, prepared_files() | {"bad_rows.jsonl": rows})
    reconcile_all()
    row.refresh_from_db()
    assert read_first_rows(row, "bad_rows.jsonl", limit=2) == [{"row": 1}, {"row": 3}]
    assert read_first_rows(row, "nothing.jsonl", limit=2) == []


def test_what_a_database_cannot_store_is_replaced() -> None:
    row = make_preparation()
    line = dataset_line("train", 1)
    files = prepared_files({"train": jsonl(line)})
    report = json.loads(files["report.json"])
    report["sets"]["train"]["card"]["fields"] = {"a\u0000": {"\u0000b": 1}}
    finish_preparation(row, files | {"report.json": json.dumps(report).encode()})
    reconcile_all()
    assert DatasetVersion.objects.get().card["fields"] == {"a\ufffd": {"\ufffdb": 1}}


def test_rights() -> None:
    actor = make_caller("read", "review").actor
    raw = make_raw()
    row = make_preparation(raw=raw)
    for attempt in (
        lambda: create_preparation(request=request_for(raw), actor=actor),
        lambda: cancel_preparation(preparation=row, actor=actor),
        lambda: retry_preparation(preparation=row, actor=actor),
    ):
        with pytest.raises(ScopeError):
            attempt()


def test_unknown_job_is_nothing() -> None:
    on_job_finished(job_id=uuid.uuid4())


def test_only_failures_and_cancellations_can_be_begun_again() -> None:
    assert PREPARATION_TRANSITIONS[PreparationState.SUCCEEDED] == frozenset()
    for state in (PreparationState.FAILED, PreparationState.CANCELLED):
        assert PREPARATION_TRANSITIONS[state] == frozenset({"queued"})
