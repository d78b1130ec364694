import re
import unicodedata
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from client.safe_text import markdown_text, shorten, visible, web_link, xml_text

# Lone surrogates included: JSON may hold them, and no encoder takes them.
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("工单 ü 😀", "工单 ü 😀"),
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        ("a\rb\nc\td", "a\\rb\\nc\\td"),
        ("\u202eevil", "\\u202eevil"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("family 👨\u200d👩", "family 👨\u200d👩"),
        ("\x9b2J", "\\x9b2J"),
        ("\ud800", "\\ud800"),
        ("[bold]x[/bold]", "[bold]x[/bold]"),
    ],
)
def test_control_and_hidden_characters_are_written_out(text: str, expected: str) -> None:
    assert visible(text) == expected


def test_line_feeds_may_be_kept() -> None:
    assert visible("a\nb\r", keep_newlines=True) == "a\nb\\r"


@given(ANY_TEXT)
def test_nothing_visible_acts_on_a_terminal(text: str) -> None:
    shown = visible(text)
    shown.encode()
    assert not any(unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} for character in shown)


@given(ANY_TEXT)
def test_any_text_fits_into_xml(text: str) -> None:
    element = ET.Element("x", value=xml_text(text))
    element.text = xml_text(text)
    ET.fromstring(ET.tostring(element, encoding="unicode"))  # noqa: S314 - our own document


@given(ANY_TEXT)
def test_markdown_text_is_one_line_without_live_markup(text: str) -> None:
    escaped = markdown_text(text)
    assert "\n" not in escaped
    assert "<" not in escaped
    # Every special character is escaped by an odd number of backslashes before it.
    assert not re.search(r"(?<!\\)(?:\\\\)*[|`*\[\]]", escaped)


def test_markdown_examples() -> None:
    assert markdown_text("<script>") == "&lt;script&gt;"
    assert markdown_text("a|b\n# x @me") == r"a\|b \# x \@me"
    assert markdown_text("[x](http://e)") == r"\[x\]\(http\://e\)"


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "http://x/)[a](b",
        "http://x/ y",
        "//x",
        "",
        None,
        "http://x/<b>",
        "http://[",
        "http://x\n",
    ],
)
def test_only_plain_web_addresses_become_links(url: str | None) -> None:
    assert web_link(url) is None


def test_a_plain_web_address_stays() -> None:
    assert web_link("https://h:1/admin/report/3/?a=b#c") == "https://h:1/admin/report/3/?a=b#c"


def test_shorten() -> None:
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("abcd", 4) == "abcd"
