import io

from rich.console import Console, RenderableType

from client.models import Submission
from client.reports.text import render_example, render_report
from tests.client.documents import decided, rule, submission_document


def draw(content: RenderableType, width: int = 140) -> str:
    console = Console(file=io.StringIO(), width=width, markup=False, emoji=False, highlight=False)
    console.print(content)
    stream = console.file
    assert isinstance(stream, io.StringIO)
    return stream.getvalue()


def report(document: dict[str, object]) -> str:
    return draw(render_report(Submission.from_json(document)))


def test_a_report_reads_from_verdict_to_link() -> None:
    text = report(
        decided(
            "rejected",
            rule("ood_ratio", "passed"),
            rule("json_parse_rate", "failed", observed=0.5, example_ids=[f"e{n}" for n in range(7)]),
        )
    )
    assert text.startswith("REJECTED tickets@3 on tickets@1 was rejected by default@1: json_parse_rate.")
    assert ["json_parse_rate", "failed", "0.500", "0.850", "…", "0.940", "0.850", "120"] in [
        line.split() for line in text.splitlines()
    ]
    assert "json_parse_rate: json_parse_rate is failed" in text
    assert "examples: e0, e1, e2, e3, e4 and 2 more" in text
    assert "regression / chat" in text
    assert "Report: http://localhost/admin/report/3" in text


def test_an_invalid_submission_shows_every_finding_gravest_first() -> None:
    findings = [
        {"code": "note", "severity": "info", "message": "fyi"},
        {"code": "rank", "severity": "error", "message": "rank 9", "where": "q_proj", "remedy": "retrain"},
    ]
    text = report(submission_document(state="invalid", is_final=True, findings=findings))
    assert "INVALID tickets@3 is invalid: 1 fault. Nothing was evaluated." in text
    assert text.index("error rank (q_proj): rank 9") < text.index("info note: fyi")
    assert "-> retrain" in text


def test_a_finding_that_the_failure_repeats_is_told_once() -> None:
    finding = {"code": "rank-mismatch", "severity": "error", "message": "r is 8, not 16."}
    failure = {
        "code": "adapter-invalid",
        "failure_class": "user",
        "message": "Refused.",
        "details": [finding],
    }
    text = report(submission_document(state="invalid", is_final=True, findings=[finding], failure=failure))
    assert text.count("rank-mismatch") == 1
    assert "error adapter-invalid: Refused." in text


def test_a_failure_of_the_server_does_not_blame_the_adapter() -> None:
    failure = {"failure_class": "infrastructure", "code": "oom", "message": "killed", "details": []}
    text = report(submission_document(state="failed", is_final=True, failure=failure))
    assert "the adapter is not to blame" in text
    assert "error oom: killed" in text


def test_markup_and_control_characters_are_shown_not_obeyed() -> None:
    hostile = "[red]x[/red] :smile: \x1b[2J\u202e"
    text = report(decided("rejected", rule(hostile, "failed", explanation=hostile), suite=hostile))
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert "[red]x[/red] :smile: \\x1b[2J\\u202e" in text


def test_examples_are_shortened_and_safe() -> None:
    row = {"role": "ood", "example_id": "o-1", "form": "merged", "score": 0.25, "reference": None}
    row |= {
        "messages": [{"role": "user", "content": "line\nbreak"}],
        "output": "\x1b]0;title\x07" + "x" * 900,
    }
    text = draw(render_example(row), width=1000)
    assert "ood o-1 (merged), score 0.250" in text
    assert "input: line\\nbreak" in text
    assert "reference: (none)" in text
    assert "output: \\x1b]0;title\\x07xxx" in text
    assert "…" in text
