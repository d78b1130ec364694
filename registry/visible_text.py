"""Shows text that a model or a user wrote: escaped, with everything that cannot be seen made visible.

Control characters, direction overrides, zero-width characters and unusual spaces become small labels with
their code point, so that a text cannot look like another one or reorder the page around it.
"""

import unicodedata
from collections.abc import Iterator
from itertools import groupby

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

MAX_SHOWN_CHARACTERS = 8000
"""Longer texts are cut; a page with twenty of them must stay quick."""

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_KEPT_CONTROLS = frozenset("\n\t")
# Letters and marks that are drawn as nothing: combining grapheme joiner, Hangul fillers, Mongolian
# separators, Braille blank. U+FE0F stays, since every second emoji has one.
_BLANK_LETTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u2800\u3164\uffa0")
_VARIATION_SELECTORS = frozenset(map(chr, [*range(0xFE00, 0xFE0F), *range(0xE0100, 0xE01F0)]))


def is_hidden(character: str) -> bool:
    """Whether a character cannot be seen, or not be told from a plain space."""
    if character in _KEPT_CONTROLS or character == " ":
        return False
    category = unicodedata.category(character)
    if category in _HIDDEN_CATEGORIES or category == "Zs":
        return True
    return character in _BLANK_LETTERS or character in _VARIATION_SELECTORS


def visible_text(text: str, *, limit: int = MAX_SHOWN_CHARACTERS) -> SafeString:
    """The text as HTML, at most `limit` characters of it; line breaks are kept and marked.

    >>> visible_text("a<b")
    'a&lt;b'
    """
    body = format_html_join("", "{}", ((part,) for part in _parts(text[:limit])))
    if len(text) <= limit:
        return body
    return format_html('{}<span class="cut-text">… {} more characters</span>', body, len(text) - limit)


def _parts(text: str) -> Iterator[str | SafeString]:
    for kind, characters in groupby(text, key=_kind_of):
        run = "".join(characters)
        if kind == "plain":
            yield run
        elif kind == "newline":
            yield format_html_join("", '<span class="line-end"></span>{}', (("\n",) for _ in run))
        else:
            yield format_html_join(
                "", '<span class="hidden-character" title="{}">{}</span>', map(_label, run)
            )


def _kind_of(character: str) -> str:
    if character == "\n":
        return "newline"
    return "hidden" if is_hidden(character) else "plain"


def _label(character: str) -> tuple[str, str]:
    code = f"U+{ord(character):04X}"
    return unicodedata.name(character, code), code
