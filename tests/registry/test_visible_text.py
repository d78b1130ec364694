"""Text from outside is escaped, and what cannot be seen is shown."""

import html
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.visible_text import is_hidden, visible_text


def test_markup_is_escaped() -> None:
    assert visible_text("<script>&'\"") == "&lt;script&gt;&amp;&#x27;&quot;"


@pytest.mark.parametrize(
    ("character", "name"),
    [
        ("\u202e", "RIGHT-TO-LEFT OVERRIDE"),
        ("\u200b", "ZERO WIDTH SPACE"),
        ("\u2066", "LEFT-TO-RIGHT ISOLATE"),
        ("\u00a0", "NO-BREAK SPACE"),
        ("\u3000", "IDEOGRAPHIC SPACE"),
        ("\ufeff", "ZERO WIDTH NO-BREAK SPACE"),
        ("\u3164", "HANGUL FILLER"),
        ("\U000e0041", "TAG LATIN CAPITAL LETTER A"),
        ("\u0007", "U+0007"),
    ],
)
def test_hidden_characters_become_labels(character: str, name: str) -> None:
    code = f"U+{ord(character):04X}"
    expected = f'a<span class="hidden-character" title="{name}">{code}</span>b'
    assert visible_text(f"a{character}b") == expected


def test_ordinary_text_stays() -> None:
    text = "Zürich 中文 مرحبا 👍\ufe0f\tx"
    assert visible_text(text) == text


def test_line_breaks_are_kept_and_marked() -> None:
    assert visible_text("a\n\nb") == 'a<span class="line-end"></span>\n<span class="line-end"></span>\nb'


def test_long_text_is_cut() -> None:
    assert visible_text("abcdef", limit=4) == 'abcd<span class="cut-text">… 2 more characters</span>'


@given(st.text())
def test_nothing_is_lost_and_no_markup_gets_in(text: str) -> None:
    shown = str(visible_text(text, limit=10_000))
    without_labels = re.sub(
        r'<span class="hidden-character" title="[^"<>]*">U\+([0-9A-F]+)</span>',
        lambda found: chr(int(found[1], 16)).replace("<", "&lt;"),
        shown,
    ).replace('<span class="line-end"></span>', "")
    assert "<" not in without_labels
    assert [c for c in html.unescape(without_labels) if not is_hidden(c)] == [
        c for c in html.unescape(html.escape(text)) if not is_hidden(c)
    ]
