"""White space: runs, ends of lines and empty lines."""

import re

from training.engine.data.cleaning.normalising.code_lines import looks_like_code
from training.engine.data.cleaning.writing_systems import HAN, KANA

_BLANK = " \u00a0\u1680\u2000-\u200a\u202f\u205f"
_RUN = re.compile(f"[{_BLANK}\u3000]{{2,}}|[{_BLANK[1:]}]")
_RUN_WITH_TABS = re.compile(f"[{_BLANK}\u3000\t]{{2,}}|[{_BLANK[1:]}\t]")
_MIN_TABLE_LINES = 2
_INDENTED = re.compile(r"(?: {4}| {0,3}\t)")
_MARKS = "\u3001-\u3003\u3008-\u3011\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff1f"
_BETWEEN_CJK = re.compile(f"(?<=[{HAN}{KANA}{_MARKS}]) (?=[{HAN}{KANA}{_MARKS}])")
_MAX_LINE_FEEDS = 2


def tidy_white_space(text: str, *, join_cjk: bool = False) -> str:
    """Return the text trimmed, with single spaces and at most two line feeds in a row.

    Kept are the indentation of lines, all but the end of lines that are indented by four spaces or a tab or
    look like code, and tabs when several lines have some, as tables do.

    Args:
        text: Text with line feeds only.
        join_cjk: Also drop the space between two Chinese or Japanese characters; never wanted where it parts
            names of a list.
    """
    if "\n" not in text and not join_cjk and text == text.strip() and not _RUN_WITH_TABS.search(text):
        return text
    raw = text.split("\n")
    is_table = sum("\t" in line.strip() for line in raw) >= _MIN_TABLE_LINES
    runs = _RUN if is_table else _RUN_WITH_TABS
    lines = [_tidy_line(line, runs, join_cjk=join_cjk) for line in raw]
    kept: list[str] = []
    num_empty = _MAX_LINE_FEEDS
    for line in lines:
        num_empty = 0 if line else num_empty + 1
        if num_empty < _MAX_LINE_FEEDS:
            kept.append(line)
    # An indentation that other lines share is the shape of the text, not a stray space.
    if kept and not any(line.startswith((" ", "\t")) for line in kept[1:]):
        kept[0] = kept[0].lstrip()
    return "\n".join(kept).rstrip()


def _tidy_line(line: str, runs: re.Pattern[str], *, join_cjk: bool) -> str:
    line = line.rstrip()
    if _INDENTED.match(line) or looks_like_code(line):
        return line
    rest = line.lstrip()
    indentation = line[: len(line) - len(rest)]
    rest = runs.sub(" ", rest)
    return indentation + (_BETWEEN_CJK.sub("", rest) if join_cjk else rest)
