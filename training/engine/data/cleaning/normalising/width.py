"""Full-width letters, digits and blanks folded to their usual width."""

import re

# Code points instead of NFKC, which also rewrites ①, ㈱ and ½ (FACTS 8).
_FULL_TO_HALF_OFFSET = 0xFEE0
_LETTERS = {
    code: code - _FULL_TO_HALF_OFFSET
    for first, last in ((0xFF10, 0xFF19), (0xFF21, 0xFF3A), (0xFF41, 0xFF5A))
    for code in range(first, last + 1)
}
_SYMBOLS = {code: code - _FULL_TO_HALF_OFFSET for code in range(0xFF03, 0xFF40)}
_INDENTATION = re.compile(r"^\u3000+", re.MULTILINE)
# The full forms of # $ % & + - . / = @ and the low line.
_SIGNS = r"\uff03-\uff06\uff0b\uff0d-\uff0f\uff1d\uff20\uff3f"
_ANY = re.compile(rf"[\u3000{_SIGNS}\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]")
_SYMBOL = re.compile(f"(?<=[A-Za-z0-9])[{_SIGNS}]++|(?<![{_SIGNS}])[{_SIGNS}]++(?=[A-Za-z0-9])")


def fold_width(text: str) -> str:
    """Return the text with U+FF10-FF19, FF21-FF3A and FF41-FF5A in ASCII and U+3000 as a space.

    Per cent, slash, plus and other signs follow when a letter or digit stands next to them; U+3000 in front
    of a line is only layout and goes. Punctuation is not a matter of code points alone: see ``punctuation``.
    """
    if text.isascii() or not _ANY.search(text):
        return text
    text = _INDENTATION.sub("", text.translate(_LETTERS)).replace("\u3000", " ")
    return _SYMBOL.sub(lambda found: found[0].translate(_SYMBOLS), text)
