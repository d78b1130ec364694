"""Triages: what is refused, how they follow their job, and that no word of a person is lost."""

import functools
from typing import Any

import pytest

from evaluation.errors import (
    EvaluationNotFound,
    PersonNeeded,
    TriageConflict,
    TriageItemChanged,
    TriageRefused,
)
from evaluation.models import Triage, TriageItem
from evaluation.selectors.triages import (
    current_verdict,
    find_next_open_position,
    get_triage,
    get_triage_item,
    list_triages,
    measure_progress,
)
from evaluation.services.triage_words import close_triage, confirm_item
from evaluation.services.triages import cancel_triage, create_triage, reconcile_all
from registry.errors import ScopeError
from registry.models import AuditEvent
from registry.services.actors import SYSTEM
from registry.services.jobs import claim_job, fail_job
from tests.fixtures.registry import Caller, make_base_model, make_caller
from tests.fixtures.triage import finish_job, item_row, make_request, make_sorted_triage, report_files
from tests.registry.services.test_races import run_together

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

MIXED = ["format"] * 6 + ["ambiguous"] * 2 + [None] * 4


@pytest.fixture
def anna() -> Caller:
    make_base_model()
    return make_caller("evaluate", "review")


def confirm(triage: Triage, position: int, kind: str, caller: Caller, **options: Any) -> TriageItem:
    revision = options.pop("expected_revision", get_triage_item(triage, position).revision)
    return confirm_item(
        triage=triage, position=position, kind=kind, expected_revision=revision, actor=caller.actor, **options
    )


def test_a_new_triage_waits_for_its_job(anna: Caller) -> None:
    triage = create_triage(request=make_request(), actor=anna.actor)
    job = triage.job
    assert job is not None
    assert (triage.state, triage.num_samples, job.kind, job.queue, job.code_version) == (
        "queued", 12, "triage", "accelerator", "triage@1",
    )  # fmt: skip
    assert job.inputs["samples"]["inline"]["samples.json"]["samples"][0]["id"] == "sample-1"
    assert job.config["prompts"][0]["few_shot"] == []
    again = create_triage(request=make_request(name="other"), actor=anna.actor)
    assert again.job == job and again != triage


def test_everything_wrong_comes_at_once(anna: Caller) -> None:
    request = make_request(
        name="bad name!", base_model_name="none", samples=[{"id": ""}], prompts=[], output_schema=[1]
    )
    with pytest.raises(TriageRefused) as caught:
        create_triage(request=request, actor=anna.actor)
    codes = {fault.code for fault in caught.value.faults}
    assert {"missing-id", "missing-messages", "prompts-invalid", "output-schema-invalid"} <= codes
    assert {fault.where for fault in caught.value.faults} >= {"/name", "/base_model"}
    assert Triage.objects.count() == 0


def test_scopes(anna: Caller) -> None:
    with pytest.raises(ScopeError):
        create_triage(request=make_request(), actor=make_caller("review", "submit").actor)
    triage = make_sorted_triage(anna.actor, MIXED)
    with pytest.raises(ScopeError):
        confirm(triage, 1, "format", make_caller("evaluate"))
    with pytest.raises(ScopeError):
        close_triage(triage=triage, actor=make_caller("evaluate").actor)
    with pytest.raises(PersonNeeded):
        confirm_item(triage=triage, position=1, kind="format", expected_revision=0, actor=SYSTEM)
    with pytest.raises(PersonNeeded):
        close_triage(triage=triage, actor=SYSTEM)


def test_the_report_becomes_samples(anna: Caller) -> None:
    triage = make_sorted_triage(anna.actor, MIXED)
    assert (triage.state, triage.items.count()) == ("sorted", 12)
    item = get_triage_item(triage, 7)
    assert (item.outcome, item.rule_kind, item.confirmed_kind, item.sample_id) == (
        "failed", "ambiguous", "", "sample-7",
    )  # fmt: skip
    assert list_triages(state="sorted").get().num_open == 8  # type: ignore[attr-defined]
    assert measure_progress(triage).num_needed == 8
    verdict = current_verdict(triage)
    assert verdict is not None and (verdict.advice.value, verdict.is_preliminary) == ("fine-tune", True)
    with pytest.raises(EvaluationNotFound):
        get_triage_item(triage, 13)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda files: files | {"triage.json": b"{}"},
        lambda files: files | {"triage.json": b"not json"},
        lambda files: {"triage.json": files["triage.json"]},
        lambda files: files | {"items.jsonl": files["items.jsonl"].splitlines(keepends=True)[0]},
        lambda files: files | {"items.jsonl": files["items.jsonl"].replace(b'"failed"', b'"broken"')},
        lambda files: files | {"items.jsonl": files["items.jsonl"].replace(b'"format"', b'"magic"')},
    ],
)
def test_a_report_of_another_form_fails_the_triage(anna: Caller, spoil: Any) -> None:
    triage = create_triage(request=make_request(2), actor=anna.actor)
    assert triage.job is not None
    finish_job(triage.job, spoil(report_files([item_row(1, "format"), item_row(2, None)])))
    triage = get_triage(triage.pk)
    assert (triage.state, triage.items.count()) == ("failed", 0)
    assert triage.failure is not None
    assert (triage.failure["code"], triage.failure["failure_class"]) == ("report-unreadable", "internal")


def test_a_failed_job_fails_the_triage_and_the_scheduler_sees_it(anna: Caller) -> None:
    triage = create_triage(request=make_request(), actor=anna.actor)
    assert triage.job is not None
    claim = claim_job(job_id=triage.job.pk, worker="w")
    assert claim is not None
    reconcile_all()
    assert get_triage(triage.pk).state == "running"
    fail_job(claim=claim, failure_class="user", code="prompt-too-long", message="Too long.", details=())
    reconcile_all()
    row = get_triage(triage.pk)
    assert row.state == "failed" and row.failure is not None and row.failure["code"] == "prompt-too-long"


def test_cancelling_spares_a_job_that_another_triage_awaits(anna: Caller) -> None:
    first = create_triage(request=make_request(), actor=anna.actor)
    second = create_triage(request=make_request(name="other"), actor=anna.actor)
    assert cancel_triage(triage=first, actor=anna.actor).state == "cancelled"
    assert get_triage(second.pk).state == "queued"
    row = cancel_triage(triage=second, actor=anna.actor)
    assert row.job is not None and row.job.state == "cancelled"
    with pytest.raises(TriageConflict):
        cancel_triage(triage=second, actor=anna.actor)


def test_words_change_the_verdict_and_are_audited(anna: Caller) -> None:
    triage = make_sorted_triage(anna.actor, MIXED)
    for position in range(1, 9):
        confirm(triage, position, "calculation", anna, note="sums" if position == 1 else "")
    verdict = current_verdict(triage)
    assert verdict is not None and (verdict.advice.value, verdict.is_preliminary) == ("code-or-rules", False)
    event = AuditEvent.objects.filter(action="triage.confirm").order_by("pk").first()
    assert event is not None and event.after is not None
    assert (event.after["kind"], event.after["rules"], event.reason) == ("calculation", "format", "sums")
    taken_back = confirm(triage, 1, "", anna)
    assert (taken_back.confirmed_kind, taken_back.confirmed_by, taken_back.revision) == ("", None, 2)
    assert find_next_open_position(triage, after=5) == 1


def test_a_stale_or_unknown_word_is_refused(anna: Caller) -> None:
    triage = make_sorted_triage(anna.actor, MIXED)
    confirm(triage, 1, "style", anna)
    with pytest.raises(TriageItemChanged) as caught:
        confirm(triage, 1, "format", anna, expected_revision=0)
    assert (caught.value.fields["revision"], caught.value.fields["kind"]) == (1, "style")
    with pytest.raises(TriageRefused) as refused:
        confirm(triage, 2, "magic", anna, note="x" * 2001 + "\0")
    assert {f.code for f in refused.value.faults} == {"kind-unknown", "text-too-long", "unstorable-text"}


def test_closing_stores_the_verdict_and_ends_the_words(anna: Caller) -> None:
    triage = make_sorted_triage(anna.actor, MIXED)
    with pytest.raises(TriageConflict) as caught:
        close_triage(triage=triage, actor=anna.actor)
    assert (caught.value.code, caught.value.fields["num_open"]) == ("triage-unconfirmed", 8)
    for position in range(1, 9):
        confirm(triage, position, "format", anna)
    closed = close_triage(triage=triage, actor=anna.actor)
    assert (closed.state, closed.closed_by) == ("closed", anna.user)
    assert closed.verdict is not None
    assert (closed.verdict["advice"], closed.verdict["is_preliminary"]) == ("fine-tune", False)
    assert closed.verdict["shares"][0]["kinds"] == {"format": 8}
    with pytest.raises(TriageConflict):
        confirm(triage, 1, "style", anna)
    with pytest.raises(TriageConflict):
        close_triage(triage=triage, actor=anna.actor)
    assert AuditEvent.objects.filter(action="triage.verdict").get().after == closed.verdict


def test_a_triage_may_be_closed_with_the_rules_word_alone(anna: Caller) -> None:
    triage = make_sorted_triage(anna.actor, MIXED)
    closed = close_triage(triage=triage, actor=anna.actor, allow_unconfirmed=True)
    assert closed.verdict is not None
    assert (closed.verdict["is_preliminary"], closed.verdict["num_unconfirmed"]) == (True, 8)


@pytest.mark.django_db(transaction=True)
def test_one_of_two_people_wins(anna: Caller) -> None:
    ben = make_caller("review")
    triage = make_sorted_triage(anna.actor, MIXED)
    say = functools.partial(confirm_item, triage=triage, position=1, expected_revision=0)
    results = run_together(
        functools.partial(say, kind="format", actor=anna.actor),
        functools.partial(say, kind="style", actor=ben.actor),
    )
    (fault,) = [result for result in results if isinstance(result, Exception)]
    assert isinstance(fault, TriageItemChanged)
    item = get_triage_item(triage, 1)
    assert (item.revision, fault.fields["kind"]) == (1, item.confirmed_kind)


@pytest.mark.django_db(transaction=True)
def test_a_word_and_the_end_do_not_pass_each_other(anna: Caller) -> None:
    triage = make_sorted_triage(anna.actor, ["format"] * 3 + [None] * 9)
    for position in (1, 2):
        confirm(triage, position, "format", anna)
    run_together(
        functools.partial(
            confirm_item, triage=triage, position=3, kind="style", expected_revision=0, actor=anna.actor
        ),
        functools.partial(close_triage, triage=triage, actor=anna.actor, allow_unconfirmed=True),
    )
    row = get_triage(triage.pk)
    item = get_triage_item(row, 3)
    # Whoever was first: the stored verdict is of exactly the words that are stored.
    assert row.verdict is not None
    assert row.verdict["num_unconfirmed"] == (0 if item.confirmed_kind else 1)
