import xml.etree.ElementTree as ET

from client.models import Submission
from client.reports.junit import render_junit
from tests.client.documents import decided, rule, submission_document

HOSTILE = "<b>\"&'\x00\x1b[31m\ud800]]>\ufffe end"


def parse(document: dict[str, object]) -> ET.Element:
    suite = ET.fromstring(render_junit(Submission.from_json(document))).find("testsuite")  # noqa: S314 - our own document
    assert suite is not None
    return suite


def test_each_rule_is_a_case_and_outcomes_are_counted() -> None:
    part = {"name": "chat", "outcome": "failed", "observed": 0.07, "threshold": 0.05}
    suite = parse(
        decided(
            "rejected",
            rule("ood_ratio", "passed"),
            rule("regression_drop", "failed", parts=[part], example_ids=["r-1", "r-2"]),
            rule("evidence", "inconclusive", observed=None, interval=None),
            rule("blind_review", "skipped"),
        )
    )
    assert suite.attrib | {"timestamp": ""} == {
        "name": "assay tickets@3",
        "timestamp": "",
        "tests": "4",
        "failures": "1",
        "errors": "1",
        "skipped": "1",
        "time": "60.0",
    }
    cases = {case.get("name"): case for case in suite.findall("testcase")}
    assert [child.tag for child in cases["ood_ratio"]] == ["system-out"]
    failure = cases["regression_drop"].find("failure")
    assert failure is not None
    assert failure.get("message") == "regression_drop is failed"
    assert failure.text is not None
    assert "chat: failed; observed 0.070" in failure.text
    assert "examples: r-1, r-2" in failure.text
    assert cases["evidence"].find("error") is not None
    assert cases["blind_review"].find("skipped") is not None
    assert {case.get("classname") for case in cases.values()} == {"assay.tickets"}


def test_an_unknown_outcome_never_looks_passed() -> None:
    suite = parse(decided("inconclusive", rule("new_rule", "something-new")))
    assert suite.get("errors") == "1"


def test_an_invalid_submission_is_a_failure_with_every_finding() -> None:
    findings = [
        {"code": "rank", "severity": "error", "message": "rank 9", "where": "layer 1", "remedy": "retrain"},
        {"code": "hint", "severity": "info", "message": "a hint", "where": None, "remedy": None},
    ]
    suite = parse(submission_document(state="invalid", is_final=True, findings=findings))
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("1", "1", "0")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.text == "error rank (layer 1): rank 9 -> retrain\ninfo hint: a hint"


def test_a_failed_one_is_an_error() -> None:
    failure = {"failure_class": "infrastructure", "code": "oom", "message": "out of memory", "details": []}
    suite = parse(submission_document(state="failed", is_final=True, failure=failure))
    error = suite.find("testcase/error")
    assert error is not None
    assert error.text == "error oom: out of memory"


def test_one_without_a_verdict_yet_is_an_error() -> None:
    assert parse(submission_document()).get("errors") == "1"


def test_hostile_text_stays_text() -> None:
    suite = parse(
        decided(
            "rejected",
            rule(HOSTILE, "failed", explanation=HOSTILE, example_ids=[HOSTILE]),
            adapter=HOSTILE,
            suite=HOSTILE,
        )
    )
    case = suite.find("testcase")
    assert case is not None
    # Only what XML forbids is gone.
    assert case.get("name") == "<b>\"&'[31m]]> end"
