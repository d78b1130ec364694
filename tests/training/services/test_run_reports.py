"""What a run's job reports is copied once, and a later attempt takes the place of an earlier one."""

from typing import Any

import pytest

from registry.services.jobs import release_job
from tests.fixtures.training_runs import (
    claim_of,
    fail,
    finding,
    finish,
    make_run,
    metric,
    mini,
    preflight,
    record,
    report,
)
from training.models import Incident, OverfitPass, RunDocument, TrainingFinding, TrainingRun
from training.selectors.runs import get_curves, get_document, get_verdict, list_known_overfits
from training.services.handbook import load_shipped_handbook
from training.services.runs import reconcile_all

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def look_again(run: TrainingRun) -> None:
    """As after a crash between the copy and the note of it."""
    TrainingRun.objects.filter(pk=run.pk).update(num_synced_events=0)
    reconcile_all()


def found(run: TrainingRun) -> list[tuple[str, int, int]]:
    return list(run.findings.values_list("code", "step", "attempt"))


def test_documents_and_findings_are_copied_once() -> None:
    run = report(make_run(), metric(1, loss=2.0), preflight(), finding(step=7), finding("padding-waste", 7))
    for _ in range(2):
        assert found(run) == [("gradient-clipped-often", 7, 1), ("padding-waste", 7, 1)]
        assert RunDocument.objects.filter(run=run).values_list("name", "passed").get() == ("preflight", True)
        assert get_curves(run) == {"loss": [(1, 2.0)]}
        look_again(run)
    item = TrainingFinding.objects.get(code="padding-waste")
    assert (item.row, item.symptom_class, item.severity) == ("padding-waste", "numeric", "warning")
    assert item.evidence == {"clipped_fraction": 0.82}


def test_records_of_a_failed_attempt_stay_and_a_later_one_replaces_them() -> None:
    run = report(make_run(), metric(1, loss=2.0), preflight(passed=False), finding(step=7), finding("b", 8))
    release_job(claim=claim_of(run))
    reconcile_all()
    assert get_document(run, "preflight") is not None
    # The second attempt goes on from a checkpoint: it tells one finding again, elsewhere, and no other.
    report(run, metric(5, loss=1.0), finding(step=9))
    assert found(run) == [("b", 8, 1), ("gradient-clipped-often", 9, 2)]
    report(run, preflight(passed=True))
    assert RunDocument.objects.values_list("passed", "attempt").get() == (True, 2)
    look_again(run)
    assert found(run) == [("b", 8, 1), ("gradient-clipped-often", 9, 2)]


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"code": "x"},
        {"code": 3, "step": 1},
        {"code": "x", "step": -1},
        {"code": "x", "step": True},
        {"code": "x", "step": 2**40},
        {"code": "", "step": 1},
    ],
)
def test_a_finding_without_code_and_step_is_left_out(values: dict[str, Any]) -> None:
    run = report(make_run(), record("finding", **values), metric(1, loss=1.0))
    assert found(run) == []
    assert get_curves(run)["loss"] == [(1, 1.0)]


def test_odd_values_of_a_finding_are_cut_to_size() -> None:
    values = {"evidence": {"a": 1, "b": "x", "c": None, "d": True}, "severity": "fatal", "treatment": 4}
    run = report(make_run(), finding("c" * 200, 1, message="m" * 9000, row=None, **values))
    item = run.findings.get()
    assert (len(item.code), len(item.message), item.row) == (64, 2000, "")
    assert (item.evidence, item.severity, item.treatment) == ({"a": 1, "c": None}, "warning", "")


def test_documents_without_a_usable_name_are_left_out() -> None:
    run = report(make_run(), record("../x", a=1), record("x" * 40, a=1), record("memory", a=1))
    assert [item.name for item in run.documents.all()] == ["memory"]


def test_passed_overfit_tests_are_remembered_for_the_same_bytes() -> None:
    first = report(make_run(), preflight(fingerprint="a" * 64))
    assert OverfitPass.objects.get().run == first
    report(make_run("b", config={"training": {"seed": 1}}), preflight(fingerprint="a" * 64))
    assert OverfitPass.objects.get().run == first
    for number, (passed, status) in enumerate([(False, "passed"), (True, "known"), (True, "failed")]):
        run = make_run(f"c{number}", config={"training": {"seed": 2 + number}})
        report(run, preflight(passed=passed, status=status, fingerprint=str(number) * 64))
    assert list_known_overfits(first.base_model) == ["a" * 64]
    later = make_run("later", config={"training": {"seed": 9}})
    assert later.job is not None
    assert later.job.hints == {"known_overfits": ["a" * 64]}
    # Hints are no part of what names a result.
    same = make_run("same")
    assert same.job is not None
    assert (same.job_id, same.job.hints) == (first.job_id, {"known_overfits": []})


def test_a_run_for_its_verdict_needs_it_and_no_adapter() -> None:
    done = finish(report(make_run(purpose="preflight"), preflight()), has_output=False)
    assert (done.state, done.artifact_id, get_verdict(done)) == ("succeeded", None, "passed")
    silent = finish(make_run(purpose="mini"))
    assert silent.failure is not None
    assert (silent.state, silent.failure["code"]) == ("failed", "mini-missing")
    # A verdict that is not there is no pass.
    vague = finish(report(make_run(purpose="mini", config={"lora": {"r": 8}}), record("mini", passed=None)))
    assert (vague.state, get_verdict(vague)) == ("failed", None)
    failed = finish(report(make_run(purpose="mini", config={"lora": {"r": 4}}), mini(passed=False)))
    assert (failed.state, get_verdict(failed)) == ("succeeded", "failed")
    assert get_verdict(finish(report(make_run(), preflight()))) is None


def test_a_failed_preflight_names_its_row() -> None:
    run = fail(report(make_run(), preflight(passed=False)), "preflight-failed", "The preflight failed.")
    assert run.failure is not None
    assert (run.failure["rows"], run.failure["message"]) == (
        ["never-stops"],
        "The preflight failed. (handbook: never-stops)",
    )


def test_errors_that_a_job_reports_open_incidents_and_warnings_do_not() -> None:
    load_shipped_handbook()
    run = report(
        make_run(),
        preflight(passed=False),
        finding("monitor/loss-flat", 50, row="loss-flat", severity="error"),
        finding(step=7),
    )
    run = fail(run, "loss-not-finite", "The loss of step 51 is not finite.")
    look_again(run)
    incidents = Incident.objects.filter(training_run=run)
    assert set(incidents.values_list("symptom__code", "first_step")) == {
        ("never-stops", 0),
        ("loss-flat", 50),
        ("loss-not-finite", None),
    }
