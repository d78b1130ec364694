"""Which outputs of a model may become answers at all: checks that need no comparison."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from training.engine.data.making.generator import Generated
from training.engine.data.making.structured_answers import (
    AnswerSchema,
    NotStrictJson,
    flatten_fields,
    holds_unstorable,
    parse_strict_json,
    strip_outer_fence,
    to_compact_json,
)
from training.engine.data.shingles import normalise

TEMPLATE_MARKERS: Final = (
    "[INST]",
    "[/INST]",
    "<<SYS>>",
    "<</SYS>>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<think>",
    "</think>",
    "### Instruction:",
    "### Response:",
)
"""Markers of chat templates besides the ``<|name|>`` kind; thinking aloud is left over in the same way."""

_TEMPLATE_TOKEN: Final = re.compile(r"<\|[A-Za-z0-9_]{1,40}\|>")
_OPENING_CHARACTERS: Final = 300
_CANNOT: Final = r"(?:can(?:no|')t|can not|won't|will not|am unable|am not able|'m unable|'m not able)\b"
_HELP: Final = (
    r"(?:to )?(?:be able to )?(?:help|assist|answer|provide|comply|fulfill?|create|write|generate|do)\b"
)
_REFUSAL: Final = re.compile(
    rf"(?:i'm|i am) (?:very |so |really )?(?:sorry|afraid)\b.{{0,60}}?\b{_CANNOT}"
    rf"|(?:sorry|i apologi[sz]e|unfortunately|my apologies)\b.{{0,40}}?\bi ?{_CANNOT}"
    rf"|i ?{_CANNOT} {_HELP}"
    r"|as an? (?:large )?(?:ai|language model|artificial intelligence)\b"
    r"|(?:非常|很|十分)?(?:抱歉|对不起|不好意思).{0,20}?(?:无法|不能|没办法|没法)"
    r"|我(?:无法|不能|没办法)(?:回答|提供|协助|帮助|满足|完成|处理)"
    r"|作为(?:一个|一名|一款|一位)?(?:ai|人工智能|大?语言模型)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerRules:
    """What an answer of a task must be.

    Attributes:
        is_json: Whether it must be one strict JSON value, after at most one outer code fence.
        schema: The schema that it must fulfil; None without one.
        allows_refusals: Whether declining to answer is an answer.
    """

    is_json: bool = False
    schema: AnswerSchema | None = None
    allows_refusals: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedAnswer:
    """An output after the checks.

    Attributes:
        text: The answer: stripped, and JSON in its one form; the raw output when it was refused.
        fields: Leaves of a JSON answer (see ``flatten_fields``); empty for free text.
        reasons: Why it was refused, every reason: ``empty``, ``unfinished``, ``template-residue``,
            ``unstorable-text``, ``refusal``, ``not-json``, ``schema-invalid``, or alone the fault of an
            output that was never made; empty when it is acceptable.
        detail: For people: what the parser or the schema said.
    """

    text: str
    fields: Mapping[str, str] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    detail: str = ""


def check_answer(output: Generated, rules: AnswerRules) -> CheckedAnswer:
    """Check one output against the rules of its task."""
    reasons = find_output_faults(output, rules)
    if not rules.is_json or output.fault or "empty" in reasons:
        text = output.text if reasons else output.text.strip()
        return CheckedAnswer(text=text, reasons=reasons)
    try:
        value = parse_strict_json(strip_outer_fence(output.text))
    except NotStrictJson as error:
        return CheckedAnswer(text=output.text, reasons=(*reasons, "not-json"), detail=str(error))
    fault = "" if rules.schema is None else rules.schema.find_fault(value)
    if reasons or fault:
        reasons = (*reasons, "schema-invalid") if fault else reasons
        return CheckedAnswer(text=output.text, reasons=reasons, detail=fault)
    text = to_compact_json(value) if rules.schema is None else rules.schema.to_text(value)
    return CheckedAnswer(text=text, fields=flatten_fields(value))


def find_output_faults(output: Generated, rules: AnswerRules) -> tuple[str, ...]:
    """Return what is wrong with an output before its content is looked at, as codes of ``CheckedAnswer``."""
    if output.fault:
        return (output.fault,)
    text = output.text
    has_content = bool(text.strip()) if rules.is_json else any(map(str.isalnum, text))
    # A JSON string may hold a fence; whether JSON is whole is the parser's to say.
    is_cut = not output.is_complete or (not rules.is_json and text.count("```") % 2 == 1)
    found = {
        "empty": not has_content,
        "unfinished": is_cut,
        "template-residue": has_template_residue(text),
        "unstorable-text": holds_unstorable(text),
        "refusal": not rules.allows_refusals and is_refusal(text),
    }
    return tuple(code for code, holds in found.items() if holds)


def has_template_residue(text: str) -> bool:
    """Return whether a chat template's marker is left in the text."""
    return _TEMPLATE_TOKEN.search(text) is not None or any(marker in text for marker in TEMPLATE_MARKERS)


def is_refusal(text: str) -> bool:
    """Return whether the text begins by declining to answer, in English or Chinese."""
    opening = normalise(text[:_OPENING_CHARACTERS]).replace("\u2019", "'")
    return _REFUSAL.match(opening) is not None
