from client.models import Submission
from client.reports.markdown import render_markdown
from tests.client.documents import decided, rule, submission_document


def render(document: dict[str, object]) -> str:
    return render_markdown(Submission.from_json(document))


def test_a_report_has_verdict_rules_reasons_sets_and_link() -> None:
    part = {"name": "chat", "outcome": "failed", "observed": 0.07}
    text = render(
        decided("rejected", rule("regression_drop", "failed", parts=[part], example_ids=["r1", "r2"]))
    )
    lines = text.splitlines()
    assert lines[0] == "## Assay: rejected"
    assert lines[2] == r"tickets\@3 on tickets\@1 was rejected by default\@1\: regression\_drop\."
    assert r"| regression\_drop | failed | 0\.900 | 0\.850 … 0\.940 | 0\.850 | 120 |" in lines
    assert r"| &nbsp;&nbsp;chat | failed | 0\.070 | \- | \- | \- |" in lines
    assert r"| holdout | 120 | 0\.910 | 0\.200 | 1\.000 | 0\.990 |" in lines
    assert r"| regression / chat | 30 | 0\.500 | 0\.600 | \- | \- |" in lines
    assert any(line.startswith(r"- **regression\_drop** (failed)") and "r1, r2" in line for line in lines)
    assert "[Report](http://localhost/admin/report/3)" in lines[-1]


def test_findings_are_listed_with_place_and_remedy() -> None:
    finding = {
        "code": "rank",
        "severity": "error",
        "message": "too big",
        "where": "q_proj",
        "remedy": "retrain",
    }
    text = render(submission_document(state="invalid", is_final=True, findings=[finding]))
    assert r"- error **rank** (q\_proj): too big *retrain*" in text


def test_hostile_text_cannot_become_markup_or_a_second_cell() -> None:
    hostile = "x | y <img src=x onerror=alert(1)> [a](javascript:b)\n# heading\n```\u202e"
    document = decided("rejected", rule(hostile, "failed", explanation=hostile), adapter=hostile)
    text = render(document | {"links": {"report": "javascript:alert(1)"}})
    assert "<img" not in text
    assert "\n# heading" not in text
    assert "](" not in text
    assert "\u202e" not in text
    row = next(line for line in text.splitlines() if line.startswith("| x"))
    assert row.replace(r"\|", "").count("|") == 7
