# ruff: noqa: RUF001 (full-width marks are what is tested)
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from training.engine.data.cleaning.sensitive.kinds import RULE_LABELS, SensitiveSpan, mask, resolve_overlaps
from training.engine.data.cleaning.sensitive.scan import scan

REGIONS = ("CN", "US")
ALL = tuple(RULE_LABELS)

PIECES = st.sampled_from(
    [
        *("13912345678", " ", "，", "a@b.com", "password: ", "hunter2", "360426199101010071", "-", "+86"),
        *("4532015112830366", "电话", "order ", "192.168.1.1", "护照号", "E12345678", "\0", "\u3000", "＠"),
        "-----BEGIN PRIVATE KEY-----",
    ]
)


def test_weightier_kind_wins_where_two_overlap() -> None:
    # The address inside the connection string is part of neither a password nor an e-mail address twice.
    text = "postgres://app:s3cr3tpw@db.firm.com/x"
    assert [(span.kind, text[span.start : span.end]) for span in scan(text, kinds=ALL, regions=REGIONS)] == [
        ("password", "s3cr3tpw")
    ]


def test_only_the_kinds_asked_for() -> None:
    assert [span.kind for span in scan("a@b.com 13912345678", kinds=("phone",), regions=REGIONS)] == ["phone"]


def test_resolve_overlaps_by_hand() -> None:
    spans = [
        SensitiveSpan(kind="phone", start=0, end=11, value="p"),
        SensitiveSpan(kind="card", start=5, end=21, value="c"),
        SensitiveSpan(kind="phone", start=21, end=32, value="q"),
    ]
    assert [span.value for span in resolve_overlaps(spans)] == ["c", "q"]
    assert resolve_overlaps([]) == []


def test_mask_shows_two_characters_and_the_length() -> None:
    assert mask("13912345678") == "13… (11 characters)"


def test_mask_shows_at_most_a_quarter_of_short_values() -> None:
    assert [mask(text) for text in ("王芳", "abc", "abcd", "abcdefgh")] == [
        "… (2 characters)", "… (3 characters)", "a… (4 characters)", "ab… (8 characters)",
    ]  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(PIECES, max_size=12).map("".join) | st.text(max_size=60))
def test_spans_are_in_order_and_apart(text: str) -> None:
    spans = scan(text, kinds=ALL, regions=REGIONS)
    places = [(span.start, span.end) for span in spans]
    assert all(0 <= start < end <= len(text) for start, end in places)
    assert all(left[1] <= right[0] for left, right in pairwise(places))
