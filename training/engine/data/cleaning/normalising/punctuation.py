# ruff: noqa: RUF001 (full-width marks are what this is about)
"""Punctuation of one width: full within Chinese and Japanese, half within texts of other writing systems.

Where the context does not settle it, a mark stays as it is: a mark between two Latin words of a Chinese
sentence, a full stop inside of a line (names, files, abbreviations), lines that look like code or tables.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable

from training.engine.data.cleaning.normalising.code_lines import looks_like_code
from training.engine.data.cleaning.writing_systems import HAN, KANA

_HALF, _FULL = ",.!?:;()", "，。！？：；（）"
_WIDEN = str.maketrans(_HALF, _FULL)
_NARROW = str.maketrans(_FULL, _HALF)
_HALF_MARKS = frozenset(",.!?:;")

_CJK = re.compile(f"[{HAN}{KANA}]")
_CJK_CONTEXT = re.compile(f"[{HAN}{KANA}，。！？：；（）、《》「」『』【】〈〉]")
_KANA = re.compile(f"[{KANA}]")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_BRACKET = re.compile(r"[()（）]")
# Decimals, times and ratios are no punctuation.
_MARKS = re.compile(r"(?:(?!(?<=\d)[.:,：，](?=\d))[,!?:;.，。！？：；])+")
_FULL_MARKS = re.compile(r"[，。！？：；]+")
_FULL_BRACKET = re.compile(r"[（）]")
_OPENED_BEHIND_WORD = re.compile(r"(?<=[^\W_])（")
_CLOSED_BEFORE_WORD = re.compile(r"）(?=[^\W_])")
_TIME_COLON = re.compile(r"(?<=\d)：(?=\d)")
_NUMERAL_LINE = re.compile(r"\s*[一二三四五六七八九十百甲乙丙丁戊]{1,4}")

_MIN_TABLE_COMMAS = 2
# A colon or a dot does not end the clause in which Chinese is looked for: 时间:10:30,地点
_GOES_ON = frozenset(".:：")
_SENTENCE_ENDS = frozenset("。！？!?.；;")
# Quotation marks and emphasis between a mark and the word that settles its width.
_SKIPPED = frozenset("\"'“”‘’)*_（(〈《「『【")
_MAX_SKIPPED = 8
_NO_PROSE = re.compile(r"[\^_*=<>~\"']")
_WORD = re.compile(r"\w")


def find_in_any_width(text: str, part: str) -> str:
    """Return the part as it stands in the text, where its marks may have the other width; "" when it is not
    there.
    """
    start = text.translate(_NARROW).find(part.translate(_NARROW))
    return text[start : start + len(part)] if start >= 0 else ""


def unify_punctuation(text: str) -> str:
    """Return the text with each mark of ``, . ! ? : ; ( )`` in the width of its context."""
    if text.isascii():
        return text
    if not _CJK.search(text):
        if not (_FULL_MARKS.search(text) or _FULL_BRACKET.search(text)):
            return text
        return "\n".join(_narrow_line(line) for line in text.split("\n"))
    lines = text.split("\n")
    tables = _find_table_lines(lines)
    return "\n".join(
        line if number in tables or not _CJK.search(line) or looks_like_code(line) else _widen_line(line)
        for number, line in enumerate(lines)
    )


def _find_table_lines(lines: list[str]) -> set[int]:
    """Return the numbers of neighbouring lines that look like comma-separated values."""
    counts = [_count_table_commas(line) for line in lines]
    return {
        number
        for number, commas in enumerate(counts)
        if commas >= _MIN_TABLE_COMMAS
        and commas in (counts[number - 1 : number] + counts[number + 1 : number + 2])
    }


def _count_table_commas(line: str) -> int:
    is_table = line and line[-1] not in _SENTENCE_ENDS and ", " not in line
    return line.count(",") if is_table else 0


def _widen_line(line: str) -> str:
    is_cjk = len(_CJK.findall(line)) >= len(_LATIN_WORD.findall(line))
    line = _widen_marks(_TIME_COLON.sub(":", line), is_cjk=is_cjk)
    return _set_brackets(line, is_cjk=is_cjk) if _BRACKET.search(line) else line


def _widen_marks(line: str, *, is_cjk: bool) -> str:
    pieces: list[str] = []
    position = last_end = 0
    clause_has_cjk = False
    keeps_commas = bool(_KANA.search(line))
    first_open, last_close = line.find("("), line.rfind(")")
    for found in _MARKS.finditer(line):
        (start, end), run = found.span(), found[0]
        part, last_end = line[last_end:start], end
        had_cjk = clause_has_cjk = clause_has_cjk or bool(_CJK.search(part))
        if not _GOES_ON.issuperset(run):
            clause_has_cjk = False
        if _HALF_MARKS.isdisjoint(run) or (keeps_commas and "," in run):
            continue
        if _is_smiley(line, end, first_open, last_close):
            continue
        is_widened = (
            is_cjk and _is_full_stop(line, start, end, part)
            if "." in run
            else _stands_in_cjk(line, start, end, is_cjk_line=is_cjk, clause_has_cjk=had_cjk)
        )
        if is_widened:
            pieces += [line[position:start].rstrip(" "), run.translate(_WIDEN)]
            position = _skip_blanks(line, end)
    return "".join(pieces) + line[position:]


def _skip_blanks(line: str, end: int) -> int:
    """Return where the text goes on behind blanks, which a full-width mark makes needless."""
    rest = end
    while rest < len(line) and line[rest] == " ":
        rest += 1
    return rest if rest < len(line) else end


def _stands_in_cjk(line: str, start: int, end: int, *, is_cjk_line: bool, clause_has_cjk: bool) -> bool:
    before, after = _letter_before(line, start), _letter_after(line, end)
    is_after_cjk = bool(after and _CJK_CONTEXT.match(after))
    if before and _CJK_CONTEXT.match(before):
        return is_cjk_line or is_after_cjk
    is_end = len(line) - end <= _MAX_SKIPPED and not line[end:].strip()
    return is_cjk_line and clause_has_cjk and (is_end or is_after_cjk)


def _is_full_stop(line: str, start: int, end: int, clause: str) -> bool:
    """Return whether a single dot ends a Chinese sentence, not a numeral, a name, a file or an ellipsis."""
    if end - start > 1 or start == 0 or not _CJK_CONTEXT.match(line[start - 1]):
        return False
    if _NUMERAL_LINE.fullmatch(clause):
        return False
    return end == len(line) or line[end] in " ”’」』）"


def _is_smiley(line: str, end: int, first_open: int, last_close: int) -> bool:
    if line[end - 1] not in ":;" or end == len(line):
        return False
    if line[end] == ")":
        return first_open < 0 or first_open > end
    if line[end] == "(":
        return last_close < end
    return False


def _letter_before(line: str, start: int) -> str:
    for character in reversed(line[max(0, start - _MAX_SKIPPED) : start]):
        if not character.isspace() and character not in _SKIPPED:
            return character
    return ""


def _letter_after(line: str, end: int) -> str:
    for character in line[end : end + _MAX_SKIPPED]:
        if not character.isspace() and character not in _SKIPPED:
            return character
    return ""


def _set_brackets(line: str, *, is_cjk: bool) -> str:
    """Give both brackets of each pair one width: full when they hold Chinese or stand next to it."""
    holds_cjk, holds_word, holds_sign = (_search_between(line, part) for part in (_CJK, _WORD, _NO_PROSE))
    characters = list(line)
    opened: list[int] = []
    for found in _BRACKET.finditer(line):
        end = found.start()
        if found[0] in "(（":
            opened.append(end)
            continue
        if not opened:
            continue
        start = opened.pop()
        before, after = line[max(0, start - 2) : start].rstrip()[-1:], line[end + 1 : end + 2]
        if before in ("]", "\\") or holds_sign(start, end) or not holds_word(start, end):
            continue
        neighbour = before or after
        is_next_to_cjk = bool(neighbour and _CJK_CONTEXT.match(neighbour))
        if is_cjk and (holds_cjk(start, end) or is_next_to_cjk):
            characters[start], characters[end] = "（", "）"
        elif characters[start] + characters[end] in ("(）", "（)"):
            characters[start], characters[end] = "(", ")"
    return _drop_blanks_at_new_brackets(line, characters)


def _search_between(line: str, pattern: re.Pattern[str]) -> Callable[[int, int], bool]:
    """Return a test whether the one-character pattern stands between two indices, in logarithmic time."""
    places = [found.start() for found in pattern.finditer(line)]
    return lambda start, end: bisect_left(places, end) > bisect_right(places, start)


def _drop_blanks_at_new_brackets(line: str, characters: list[str]) -> str:
    """Full-width brackets carry their own blank."""
    for index, character in enumerate(characters):
        if character == line[index]:
            continue
        if character == "（" and index > 0 and line[index - 1] == " ":
            characters[index - 1] = ""
        elif character == "）" and index + 1 < len(line) and line[index + 1] == " ":
            characters[index + 1] = ""
    return "".join(characters)


def _narrow_line(line: str) -> str:
    """Return a line of a text without Chinese or Japanese with half-width marks, and the space they need."""

    def narrowed(found: re.Match[str]) -> str:
        before = line[found.start() - 1 : found.start()]
        after = line[found.end() : found.end() + 1]
        if not before or not (before.isalnum() or before in "\"'”’)）]"):
            return found[0]
        if before.isdigit() and after.isdigit():
            return found[0]
        return found[0].translate(_NARROW) + (" " if after.isalnum() or after in ("“", "‘") else "")

    if _FULL_MARKS.search(line):
        line = _TIME_COLON.sub(":", line)
        line = _FULL_MARKS.sub(narrowed, line)
    if not _FULL_BRACKET.search(line) or not _LATIN_WORD.search(line):
        return line
    line = _OPENED_BEHIND_WORD.sub(" (", line).replace("（", "(")
    return _CLOSED_BEFORE_WORD.sub(") ", line).replace("）", ")")
