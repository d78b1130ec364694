import pytest

from client.errors import UnexpectedAnswerError
from client.exit_codes import exit_code_for
from client.models import Submission
from client.run_models import Channel, Job, Run, read_ready_checks
from tests.client.documents import decided, rule, submission_document


def test_a_submission_with_a_verdict_is_read_whole() -> None:
    part = {"name": "chat", "outcome": "failed", "observed": 0.1}
    document = decided("rejected", rule("regression_drop", "failed", parts=[part], example_ids=["r-1"]))
    submission = Submission.from_json(document | {"a_newer_member": 1})
    assert submission.reference == "tickets@3"
    assert submission.decision is not None
    result = submission.decision.rules[0]
    assert (result.name, result.outcome, result.interval) == ("regression_drop", "failed", (0.85, 0.94))
    assert (result.parts[0].name, result.parts[0].observed, result.parts[0].interval) == ("chat", 0.1, None)
    assert submission.report_url == "http://localhost/admin/report/3"


def test_a_running_submission_names_its_job() -> None:
    job = {"id": "j", "kind": "merge", "state": "running", "fraction": 1, "message": None}
    submission = Submission.from_json(submission_document(current_job=job))
    assert submission.current_job is not None
    assert (submission.current_job.fraction, submission.current_job.message) == (1.0, "")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"version": "3"}, "a whole number in 'version'"),
        ({"version": True}, "a whole number in 'version'"),
        ({"state": None}, "text in 'state'"),
        ({"is_final": 1}, "true or false in 'is_final'"),
        ({"findings": {}}, "a list in 'findings'"),
        ({"decision": []}, "an object in 'decision'"),
    ],
)
def test_a_member_of_the_wrong_type_is_named(changes: dict[str, object], words: str) -> None:
    with pytest.raises(UnexpectedAnswerError, match=words):
        Submission.from_json(submission_document(**changes))


def test_an_answer_that_is_no_object_is_refused() -> None:
    with pytest.raises(UnexpectedAnswerError):
        Submission.from_json([])


@pytest.mark.parametrize(
    ("state", "code"),
    [
        ("passed", 0),
        ("rejected", 1),
        ("inconclusive", 2),
        ("invalid", 3),
        ("failed", 3),
        ("cancelled", 3),
        ("evaluated", 3),
        ("something new", 3),
    ],
)
def test_exit_codes_follow_the_state(state: str, code: int) -> None:
    assert exit_code_for(Submission.from_json(submission_document(state=state))) == code


def test_runs_jobs_channels_and_readiness_are_read() -> None:
    failure = {
        "failure_class": "user",
        "code": "c",
        "message": "m",
        "details": [{"code": "d", "message": "e"}],
    }
    run = Run.from_json({"id": "1", "state": "failed", "failure": failure})
    assert run.is_final
    assert run.failure is not None
    assert run.failure.details[0].code == "d"
    job = Job.from_json({"id": "1", "kind": "merge", "state": "running", "fraction": 0.5})
    assert not job.is_final
    channel = Channel.from_json({"name": "s", "form": "merged", "etag": "e", "current": None})
    assert channel.current is None
    checks = read_ready_checks({"status": "x", "checks": {"broker": {"ok": False, "detail": "away"}}})
    assert [(check.name, check.is_ok, check.detail) for check in checks] == [("broker", False, "away")]
