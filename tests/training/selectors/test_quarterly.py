"""What a quarter's review counts, at its borders; and that its Markdown keeps foreign text as text."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from markdown_it import MarkdownIt

from tests.fixtures.incidents import make_incident
from tests.fixtures.registry import Caller, make_caller
from training.engine.handbook.rows import HandbookRow
from training.models import Incident, Symptom
from training.selectors.quarterly import QuarterReview, review_quarter
from training.selectors.quarterly_markdown import MAX_CELL_CHARACTERS, literal, word_duration, write_review
from training.selectors.quarters import Quarter
from training.services.handbook import add_row, load_shipped_handbook
from training.services.handbook_drafts import RowDraft, TextDraft

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]

QUARTER = Quarter(year=2026, number=4)
FIRST = datetime(2026, 10, 1, tzinfo=UTC)
LAST = datetime(2026, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
NEXT = datetime(2027, 1, 1, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)
HOSTILE = (
    "a|b [x](http://evil.example) <img src=x onerror=alert(1)> @team `c` ~~d~~ \u202e"
    " www.evil.example &#60;i>"
)


@pytest.fixture
def anna() -> Caller:
    load_shipped_handbook()
    Symptom.objects.update(created_at=datetime(2026, 1, 1, tzinfo=UTC))
    return make_caller("review", "submit")


def put(anna: Caller, opened_at: datetime, symptom: str | None = "loss-flat", **columns: Any) -> Incident:
    incident = make_incident(anna.actor, opened_at=opened_at, symptom=symptom)
    Incident.objects.filter(pk=incident.pk).update(**columns)
    return incident


def review() -> QuarterReview:
    return review_quarter(QUARTER)


def test_borders(anna: Caller) -> None:
    put(anna, FIRST - INSTANT)
    put(anna, FIRST, "forgetting")
    put(anna, LAST, "forgetting")
    put(anna, NEXT, "out-of-memory-later")
    found = review()
    assert (found.num_opened, found.num_open) == (2, 3)
    (counted,) = found.by_symptom
    assert (counted.code, counted.num_opened, counted.is_new) == ("forgetting", 2, True)
    assert [row.code for row in found.new_symptoms] == ["forgetting"]
    # What occurs later has not occurred by the end of the quarter.
    never = {row.code for row in found.never_occurred}
    assert never == {str(row) for row in HandbookRow} - {"loss-flat", "forgetting"}


def test_a_symptom_is_new_once(anna: Caller) -> None:
    put(anna, FIRST - timedelta(days=400))
    put(anna, FIRST)
    put(anna, FIRST - INSTANT, "forgetting", state="dismissed", closed_at=FIRST)
    put(anna, FIRST, "forgetting")
    assert [row.code for row in review().new_symptoms] == ["forgetting"]


def test_time_to_resolve(anna: Caller) -> None:
    hours = [1, 2, 30]
    for number in hours:
        # Opened in the quarter before, resolved in this one.
        opened = FIRST - timedelta(minutes=30)
        put(anna, opened, state="resolved", closed_at=opened + timedelta(hours=number))
    put(anna, FIRST, state="resolved", closed_at=NEXT)
    put(anna, FIRST, state="dismissed", closed_at=FIRST + timedelta(days=9))
    found = review()
    # By hand: the median of 1, 2 and 30 hours; what is resolved in the next quarter is still open here.
    assert (found.num_resolved, found.median_seconds_to_resolve) == (3, 7200.0)
    assert (found.num_opened, found.num_dismissed, found.num_open) == (2, 1, 1)
    assert "median time 2.0 hours" in write_review(found)


def test_repeated_without_a_check(anna: Caller) -> None:
    put(anna, FIRST)
    asking = put(anna, LAST, asks_for_check=True)
    put(anna, LAST, asks_for_check=True, check_answer="made")
    put(anna, LAST, "forgetting", asks_for_check=True, check_answer="declined")
    (repeated,) = review().repeated
    assert (repeated.code, repeated.num_occurrences, repeated.incidents) == ("loss-flat", 3, (asking.number,))


def test_rows_that_people_added_and_rows_to_add(anna: Caller) -> None:
    text = TextDraft(symptom="It hums.", causes=("Fan.",), treatment=("Listen.",))
    for code, created_at in (("in-time", LAST), ("too-late", NEXT), ("too-early", FIRST - INSTANT)):
        draft = RowDraft(code=code, symptom_class="resource", detectors=(), texts={"en": text})
        add_row(draft=draft, actor=anna.actor)
        Symptom.objects.filter(code=code).update(created_at=created_at)
    rowless = put(anna, FIRST, None)
    put(anna, FIRST, None, state="dismissed", closed_at=LAST)
    found = review()
    assert [row.code for row in found.rows_added] == ["in-time"]
    assert [item.number for item in found.rows_to_add] == [rowless.number]
    assert {"in-time", "too-early"} <= {row.code for row in found.never_occurred}
    assert "too-late" not in {row.code for row in found.never_occurred}


def test_an_empty_quarter(anna: Caller) -> None:
    found = review()
    assert (found.num_opened, found.num_resolved, found.median_seconds_to_resolve) == (0, 0, None)
    text = write_review(found)
    assert text.startswith(
        "# Incidents of 2026Q4\n\nFrom 2026-10-01 00:00 UTC until before 2027-01-01 00:00 UTC."
    )
    assert text.count("None.") == 6 and text.endswith("|\n")


def test_hostile_text_stays_text(anna: Caller) -> None:
    incident = put(anna, FIRST, None, title=HOSTILE)
    text = write_review(review())
    # The parser of GitHub's tables and strike-through, with HTML and bare addresses switched on.
    parser = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    html = parser.render(text)
    (row,) = [
        line
        for line in html.split("</tr>")
        if "evil.example" in line and f"<td>{incident.number}</td>" in line
    ][:1]
    assert row.count("<td>") == 4
    for tag in ("<img", "<a ", "<code", "<s>", "<i>"):
        assert tag not in html
    assert "a|b [x](http://evil.example) &lt;img src=x" in html and "\\u202e" in html
    assert "\u202e" not in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a|b\n<b>", r"a\|b &lt;b&gt;"),
        ("http://x", r"http\://x"),
        ("www.x", r"www\.x"),
        ("@team", r"\@team"),
        ("&lt;", r"&amp;lt;"),
        ("- x", r"\- x"),
        ("\x1b[31m", r"\\x1b\[31m"),
        ("x" * 400, "x" * (MAX_CELL_CHARACTERS - 1) + "…"),
    ],
)
def test_literal(text: str, expected: str) -> None:
    assert literal(text) == expected


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [(None, "-"), (0, "0 minutes"), (90, "2 minutes"), (5400, "1.5 hours"), (216_000, "2.5 days")],
)
def test_durations(seconds: float | None, expected: str) -> None:
    assert word_duration(seconds) == expected
