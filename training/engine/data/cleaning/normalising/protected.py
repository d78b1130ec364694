"""Parts of a text that no normalisation may touch: code, addresses, JSON inside of prose."""

import json
import re
from dataclasses import dataclass

# Addresses end before closing punctuation, which belongs to the sentence.
_PROTECTED = re.compile(
    r"```.*?(?:```|\Z)"
    r"|~~~.*?(?:~~~|\Z)"
    r"|`[^`\n]++`"
    r"|(?<![A-Za-z0-9])[A-Za-z][A-Za-z0-9+.-]{1,15}://[!-~]*[A-Za-z0-9/=&#_~%-]"
    r"|(?<![A-Za-z0-9.])www\.[!-~]*[A-Za-z0-9/=&#_~%-]"
    r"|(?<![A-Za-z0-9._%+-])[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}"
    # What can begin JSON; most brackets in prose cannot.
    r"|(?P<bracket>\{\s{0,20}[\"}]|\[\s{0,20}[\[\]{\"0-9tfn-])",
    re.DOTALL,
)
# One of these stands in every protected part.
_SIGNS = ("`", "~~~", "://", "www.", "@", "{", "[")
_FIRST_STAND_IN = "\uf8ff"
_DECODER = json.JSONDecoder(parse_int=str, parse_float=str)
# The search for JSON may cost this many times the text's length, counted in characters looked at.
_MAX_LOOKS_PER_CHARACTER = 4
_MIN_LOOKS = 10_000
_LOOKS_OF_DEEP_NESTING = 1000
# The parser's error counts the lines before it, which is that much faster than parsing.
_COUNTED_PER_LOOK = 50


@dataclass(frozen=True, slots=True)
class MaskedText:
    """A text in which each protected part is one stand-in character.

    Attributes:
        text: The text with stand-ins; treatments must keep these, in their order.
        stand_in: A private-use character that the original does not have.
        parts: What the stand-ins stand for, in their order.
    """

    text: str
    stand_in: str
    parts: tuple[str, ...]

    def unmask(self, treated: str) -> str:
        """Return the treated text with the protected parts in their places.

        Raises:
            ValueError: A treatment lost or added a stand-in.
        """
        pieces = treated.split(self.stand_in)
        if len(pieces) != len(self.parts) + 1:
            raise ValueError(f"{len(pieces) - 1} stand-ins for {len(self.parts)} protected parts")
        return "".join(piece + part for piece, part in zip(pieces, (*self.parts, ""), strict=True))


def mask_protected(text: str) -> MaskedText:
    """Return the text with stand-ins for code fences and spans, URLs, e-mail addresses and JSON.

    Args:
        text: Any text. The search for JSON is given up, and the rest protected as it is, when it has cost
            about four times the text's length: brackets nested in order to be slow are no prose.
    """
    stand_in = _find_stand_in(text)
    if not _has_sign(text):
        return MaskedText(text=text, stand_in=stand_in, parts=())
    pieces: list[str] = []
    parts: list[str] = []
    position, search_from = 0, 0
    looks_left = _MAX_LOOKS_PER_CHARACTER * len(text) + _MIN_LOOKS
    while found := _PROTECTED.search(text, search_from):
        start, end = found.span()
        if found["bracket"]:
            end, num_looks = _end_of_json(text, start)
            looks_left -= num_looks
            if looks_left < 0:
                end = len(text)
            elif end == start:
                search_from = start + 1
                continue
        pieces.append(text[position:start])
        parts.append(text[start:end])
        position = search_from = end
    pieces.append(text[position:])
    return MaskedText(text=stand_in.join(pieces), stand_in=stand_in, parts=tuple(parts))


def _end_of_json(text: str, start: int) -> tuple[int, int]:
    """Return where the JSON that starts here ends, or start when there is none, and how long the look was."""
    try:
        _, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        return start, _LOOKS_OF_DEEP_NESTING
    except json.JSONDecodeError as error:
        was_unterminated = error.msg.startswith("Unterminated")
        return start, (len(text) if was_unterminated else error.pos) - start + error.pos // _COUNTED_PER_LOOK
    return end, 0


def _has_sign(text: str) -> bool:
    for sign in _SIGNS:  # noqa: SIM110 (any() takes twice as long)
        if sign in text:
            return True
    return False


def _find_stand_in(text: str) -> str:
    if _FIRST_STAND_IN not in text:
        return _FIRST_STAND_IN
    used = set(text)
    return next(chr(code) for code in range(ord(_FIRST_STAND_IN), 0x110000) if chr(code) not in used)
