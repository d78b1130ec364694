"""Makes text from servers, models and users harmless before it reaches a terminal, a log or a document.

A model's output may hold escape sequences that move the cursor, bidirectional overrides that turn a line
around, or characters that XML forbids. None of them may act; people must still see that they were there.
"""

import re
import unicodedata
from urllib.parse import urlsplit

# Cf holds the bidirectional overrides (Trojan Source, CVE-2021-42574), zero-width characters and the BOM; Zl
# and Zp break lines in some viewers; Cs are lone surrogates, which no encoder accepts.
_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
# Zero-width (non-)joiners are needed by Persian, Indic scripts and emoji sequences, and move nothing.
_HARMLESS_FORMAT_CHARACTERS = frozenset("\u200c\u200d")
# https://www.w3.org/TR/xml/#charsets, production [2] Char, complemented.
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+\-.!|~>$@:])")
_URL_UNSAFE = re.compile(r"[\s<>()\[\]\"'`\\|^{}]")


def visible(text: str, *, keep_newlines: bool = False) -> str:
    r"""Return the text with every control or hidden character written out (ESC becomes ``\x1b``).

    Args:
        text: Text of any origin.
        keep_newlines: Leave line feeds alone (a multi-line message); otherwise they become ``\n`` too.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible_character(character, keep_newlines) for character in text)


def _visible_character(character: str, keep_newlines: bool) -> str:
    if character == "\n" and keep_newlines:
        return character
    if character in _HARMLESS_FORMAT_CHARACTERS:
        return character
    if unicodedata.category(character) in _HIDDEN_CATEGORIES:
        return character.encode("unicode_escape").decode("ascii")
    return character


def shorten(text: str, max_characters: int) -> str:
    """Return the text, cut to ``max_characters`` with an ellipsis when it is longer."""
    return text if len(text) <= max_characters else text[: max_characters - 1] + "…"


def xml_text(text: str) -> str:
    """Return the text without the characters that XML 1.0 forbids; escaping is left to the XML writer."""
    return _NOT_XML.sub("", text)


def markdown_text(text: str) -> str:
    """Return the text as literal one-line Markdown: nothing becomes markup, HTML, a link or a mention."""
    one_line = visible(" ".join(text.split()))
    escaped = _MARKDOWN_SPECIAL.sub(r"\\\1", one_line.replace("&", "&amp;").replace("<", "&lt;"))
    return escaped.replace("\\>", "&gt;")


def web_link(url: str | None) -> str | None:
    """Return the address when it is a plain http(s) one that is safe inside a document, else None."""
    if not url or _URL_UNSAFE.search(url) or not url.isprintable():
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    return url if parts.scheme in {"http", "https"} and parts.netloc else None
