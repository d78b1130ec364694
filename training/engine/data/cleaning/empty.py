# ruff: noqa: RUF001 (full-width marks are what this is about)
"""Cleaning step: examples without content (MISSION C3(3)).

Short is not empty: 好的, OK and 7 are inputs and answers like others.
"""

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from registry.artifacts.findings import shown
from training.engine.data.cleaning.step import Outcome, StepContext, StepKind
from training.engine.data.examples import Example
from training.engine.settings_rules import TEXTS, choice

PLACEHOLDERS = frozenset(
    (
        *("n/a", "none", "null", "nil", "nan", "undefined", "todo", "tbd", "fixme", "placeholder"),
        *("to be added", "to be completed", "to be determined", "same as above", "ditto", "lorem ipsum"),
        *("无", "暂无", "无内容", "待补充", "待填写", "待定", "待完善", "同上", "空", "略", "占位符"),
    )
)
"""Answers that stand for an answer still to be written; compared without case, brackets and marks around."""

_FILLED_IN = re.compile(r"x{3,}|×{2,}", re.IGNORECASE)
_AROUND = " \t\n.。!！,，;；:：<>[]()（）【】\"'“”"
_MAX_PLACEHOLDER_CHARACTERS = 40
_EMPTY_JSON = re.compile(r"\{\s*\}|\[\s*\]")
_EMOJI = re.compile(
    r"[\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\u3030\u303d\u3297"
    r"\u3299\U0001f000-\U0001faff\ufe0f\u200d\u20e3]"
)
# Symbols that Unicode does not count as punctuation, but that say as little when they stand alone.
_MORE_PUNCTUATION = frozenset("~`^|～｀＾｜￣´¨ˉ")


def what_is_missing(text: str) -> str:
    """Return ``empty``, ``punctuation-only``, ``emoji-only``, or "" for a text with content.

    Letters, digits and symbols such as ``<`` or ``√`` are content; white space, punctuation, control
    characters and emoji are not.
    """
    has_punctuation = has_emoji = False
    for character in text:
        if _EMOJI.match(character):
            has_emoji = True
            continue
        category = unicodedata.category(character)[0]
        if category == "P" or character in _MORE_PUNCTUATION:
            has_punctuation = True
        elif category not in "ZC":
            return ""
    if has_emoji:
        return "emoji-only"
    return "punctuation-only" if has_punctuation else "empty"


def is_placeholder(text: str) -> bool:
    """Return whether a text only holds the place of one: ``N/A``, ``TODO``, ``xxx``, 待补充."""
    stripped = text.strip()
    if len(stripped) > _MAX_PLACEHOLDER_CHARACTERS:
        return False
    core = stripped.strip(_AROUND).casefold()
    return core in PLACEHOLDERS or bool(_FILLED_IN.fullmatch(core))


class _DropEmpty:
    def __init__(self, parameters: Mapping[str, Any], _context: StepContext) -> None:
        self._allowed = frozenset(text.strip().casefold() for text in parameters["allowed"])
        self._inputs = parameters["inputs"]
        self._empty_json = parameters["empty_json"]

    def observe(self, example: Example) -> None:
        """Nothing is learnt."""

    def apply(self, example: Example) -> Outcome:
        missing = self._judge_answer(example.answer)
        if missing and missing not in ("empty-json", "no-answer"):
            return Outcome.dropped(missing, detail=shown(example.answer))
        if missing == "empty-json" and self._empty_json == "drop":
            return Outcome.dropped(missing)
        input_missing = self._judge_input(example.input_text)
        if input_missing and self._inputs == "drop":
            return Outcome.dropped(input_missing, detail=shown(example.input_text))
        return Outcome.flagged(example, *filter(None, (missing, input_missing)))

    def facts(self) -> Mapping[str, Any]:
        return {}

    def _judge_answer(self, answer: str | None) -> str:
        if answer is None:
            return "no-answer"
        if answer.strip().casefold() in self._allowed:
            return ""
        if _EMPTY_JSON.fullmatch(answer.strip()):
            return "empty-json"
        missing = what_is_missing(answer)
        if missing:
            return f"{missing}-answer"
        return "placeholder-answer" if is_placeholder(answer) else ""

    def _judge_input(self, text: str) -> str:
        missing = "" if text.strip().casefold() in self._allowed else what_is_missing(text)
        return f"{missing}-input" if missing else ""


KIND = StepKind(
    name="drop_empty",
    version=1,
    summary="Drops examples whose input or answer is empty, only punctuation or emoji, or a placeholder.",
    source="MISSION C3(3)",
    rules={"allowed": TEXTS, "inputs": choice("drop", "flag"), "empty_json": choice("flag", "drop")},
    defaults={"allowed": (), "inputs": "drop", "empty_json": "flag"},
    build=_DropEmpty,
    is_local=True,
)
KINDS: tuple[StepKind, ...] = (KIND,)
