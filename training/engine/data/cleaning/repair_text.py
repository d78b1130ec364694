"""Cleaning step: broken characters mended, and nothing else touched (MISSION C3(4)).

Only what is certain is mended: text decoded in a wrong encoding, characters that no reader sees, and the
many forms of a line break. Quotation marks, ligatures and widths are none of this step's business.
"""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from training.engine.data.cleaning.json_answers import is_json_container, map_string_values
from training.engine.data.cleaning.step import Outcome, StepContext, StepKind
from training.engine.data.examples import Example
from training.engine.errors import ConfigInvalid
from training.engine.settings_rules import FLAG

_EMOJI = (
    r"\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u2bff\u3030\u303d\u3297\u3299\ufe0f\U0001f000-\U0001faff"
)
# Scripts from Arabic to Myanmar, Khmer and Mongolian, in which the joiners change how a word is written.
_JOINING = r"\u0600-\u109f\u1780-\u18af"

_TERMINAL_CODE = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f]")
_C1_CONTROL = re.compile(r"[\x80-\x9f]")
_LINE_BREAK = re.compile(r"\r\n|[\r\x0b\x0c\u2028\u2029]")
_BYTE_ORDER_MARK = re.compile("\ufeff")
_NO_BREAK_SPACE = re.compile(r"[\u00a0\u2007\u202f]")
_JOINER_OR_UNSEEN = re.compile(
    rf"(?P<needed>(?<=[{_EMOJI}])\u200d(?=[{_EMOJI}])|(?<=[{_JOINING}])[\u200c\u200d])"
    r"|[\u00ad\u180e\u200b-\u200d\u2060-\u2064]"
)
_BIDI_CONTROL = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_RIGHT_TO_LEFT = re.compile(
    r"[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"
)
# The flags of England, Scotland and Wales are spelt with tag characters; elsewhere these only hide text.
_TAGS = re.compile("(?P<needed>\U0001f3f4[\U000e0030-\U000e007a]{3,6}\U000e007f)|[\U000e0000-\U000e007f]")
_SURROGATE_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_SURROGATE = re.compile("[\ud800-\udfff]")
# U+FFFD itself, and what two of them look like after a reading as GBK.
_LOST = re.compile("\ufffd|\u951f\u65a4\u62f7")
# Every character that a mender behind the first one takes away or makes another.
_MENDABLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\xa0\xad\u061c\u180e\u2007\u200b-\u200f\u2028-\u202f\u2060-\u2064\u2066-\u2069\ufeff"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_PLAIN = re.compile(r"[\t\n -~]*")
_CHINESE = re.compile(r"[\t\n -~\u2014\u2018-\u201d\u2026\u3001-\u3011\u4e00-\u9fff\uff01-\uff5e]*")
_HAN = re.compile(r"[\u4e00-\u9fff]")
_MIN_HAN = 2
_AROUND_JSON = " \t\n\r\u00a0\u200b\u200c\u200d\u2060\ufeff"

Replace = str | Callable[[re.Match[str]], str]


def repair(text: str, *, mojibake: bool = True) -> tuple[str, tuple[str, ...]]:
    """Return the mended text and what was mended, in a fixed order; applied twice it does nothing more.

    Reasons: ``mojibake`` (wrong decoding undone), ``surrogate`` (a pair joined), ``line-break`` (made a line
    feed), ``control-character`` (removed, or the Windows-1252 character meant), ``byte-order-mark``,
    ``zero-width``, ``bidi-control``, ``hidden-tag`` (removed), ``no-break-space`` (made a space),
    ``lost-characters`` (U+FFFD or its traces: nothing can be done, a person should look).

    Args:
        text: Any text, lone surrogates included.
        mojibake: Whether wrong decodings are undone.
    """
    if _PLAIN.fullmatch(text):
        return text, ()
    reasons: set[str] = set()
    # Every change shortens the text or takes away one of finitely many characters, so this ends.
    while not _PLAIN.fullmatch(text):
        before = text
        # Mojibake first: it may be made of the very characters that are removed afterwards.
        if mojibake and (mended := _undo_wrong_decoding(text)) != text:
            reasons.add("mojibake")
            text = mended
        for reason, mend in _MENDERS if _MENDABLE.search(text) else ():
            mended = mend(text)
            if mended != text:
                reasons.add(reason)
                text = mended
        if text == before:
            break
    if _LOST.search(text):
        reasons.add("lost-characters")
    return text, _in_order(reasons)


def _in_order(reasons: set[str]) -> tuple[str, ...]:
    return tuple(reason for reason in REASONS if reason in reasons)


def _undo_wrong_decoding(text: str) -> str:
    return "\n".join(_undo_in_line(line) for line in text.split("\n"))


def _undo_in_line(line: str) -> str:
    return line if line.isascii() else _undo_gbk(_fix_encoding()(line))


def _undo_gbk(line: str) -> str:
    """Return the UTF-8 text that was read as GBK, when all of the line says so.

    Chinese text does not pass by accident: its GBK bytes would have to be three-byte UTF-8 sequences of Han
    characters throughout, and those begin with bytes that only rare characters have.
    """
    try:
        decoded = line.encode("gbk").decode("utf-8")
    except UnicodeError:
        return line
    is_chinese = _CHINESE.fullmatch(decoded) and len(_HAN.findall(decoded)) >= _MIN_HAN
    return decoded if is_chinese else line


@lru_cache(maxsize=1)
def _fix_encoding() -> Callable[[str], str]:
    # Imported when needed: the catalogue of steps is also read where the library is not installed.
    try:
        import ftfy
    except ImportError as error:
        raise ConfigInvalid(
            "library-missing", "repair_text needs ftfy; install assay-gate[data] or set mojibake to false"
        ) from error
    config = ftfy.TextFixerConfig(
        unescape_html=False,
        remove_terminal_escapes=False,
        replace_lossy_sequences=False,
        fix_c1_controls=False,
        fix_latin_ligatures=False,
        fix_character_width=False,
        uncurl_quotes=False,
        fix_line_breaks=False,
        fix_surrogates=False,
        remove_control_chars=False,
        normalization=None,
        explain=False,
    )
    return lambda text: ftfy.fix_encoding(text, config)


def _substitute(pattern: re.Pattern[str], new: Replace) -> Callable[[str], str]:
    return lambda text: pattern.sub(new, text)


def _keep_needed(found: re.Match[str]) -> str:
    return found["needed"] or ""


def _read_c1(found: re.Match[str]) -> str:
    # As HTML does it: these code points are practically always Windows-1252 bytes.
    return found[0].encode("latin-1").decode("cp1252", errors="ignore")


def _remove_bidi_controls(text: str) -> str:
    return text if _RIGHT_TO_LEFT.search(text) else _BIDI_CONTROL.sub("", text)


def _join_pair(found: re.Match[str]) -> str:
    return found[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


_MENDERS: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("surrogate", _substitute(_SURROGATE_PAIR, _join_pair)),
    ("lost-characters", _substitute(_SURROGATE, "\ufffd")),
    ("line-break", _substitute(_LINE_BREAK, "\n")),
    ("control-character", _substitute(_TERMINAL_CODE, "")),
    ("control-character", _substitute(_CONTROL, "")),
    ("control-character", _substitute(_C1_CONTROL, _read_c1)),
    ("byte-order-mark", _substitute(_BYTE_ORDER_MARK, "")),
    ("zero-width", _substitute(_JOINER_OR_UNSEEN, _keep_needed)),
    ("bidi-control", _remove_bidi_controls),
    ("hidden-tag", _substitute(_TAGS, _keep_needed)),
    ("no-break-space", _substitute(_NO_BREAK_SPACE, " ")),
)
REASONS = tuple(dict.fromkeys(("mojibake", *(reason for reason, _ in _MENDERS))))


class _RepairText:
    def __init__(self, parameters: Mapping[str, Any], _context: StepContext) -> None:
        self._mojibake = bool(parameters["mojibake"])

    def observe(self, example: Example) -> None:
        """Nothing is learnt."""

    def apply(self, example: Example) -> Outcome:
        contents: dict[int, str] = {}
        reasons: set[str] = set()
        for index, message in enumerate(example.messages):
            if message.role != "system":
                contents[index] = self._mend(message.content, reasons)
        repaired = example.with_contents(contents)
        if repaired == example:
            return Outcome.flagged(example, *_in_order(reasons))
        return Outcome.changed(repaired, *_in_order(reasons))

    def facts(self) -> Mapping[str, Any]:
        return {}

    def _mend(self, text: str, reasons: set[str]) -> str:
        # Also true of JSON, as long as nothing is escaped in it.
        if _PLAIN.fullmatch(text) and "\\" not in text:
            return text

        def mend(part: str) -> str:
            repaired, found = repair(part, mojibake=self._mojibake)
            reasons.update(found)
            return repaired

        # A line break made inside of a JSON string must come out escaped, so values are mended one by one.
        core = text.strip(_AROUND_JSON)
        if not is_json_container(core):
            return mend(text)
        start = text.index(core)
        return mend(text[:start]) + map_string_values(core, mend) + mend(text[start + len(core) :])


KIND = StepKind(
    name="repair_text",
    version=1,
    summary="Undoes wrong decodings and removes characters that no reader sees; fine text is never touched.",
    source="MISSION C3(4)",
    rules={"mojibake": FLAG},
    defaults={"mojibake": True},
    build=_RepairText,
    is_local=True,
)
KINDS: tuple[StepKind, ...] = (KIND,)
