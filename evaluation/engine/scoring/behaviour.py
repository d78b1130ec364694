"""Behaviour of a generated output that no score shows (F10): never stops, template residue, repetition,
preamble.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

TEMPLATE_MARKERS: Final = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|begin_of_text|>",
    "<|end_of_text|>",
    "<|user|>",
    "<|assistant|>",
    "<|system|>",
    "<|end|>",
    "<start_of_turn>",
    "<end_of_turn>",
    "[INST]",
    "[/INST]",
    "<<SYS>>",
    "<</SYS>>",
    "### Instruction:",
    "### Response:",
)
"""Markers of the common chat templates; a model may also spell one out in ordinary tokens."""

MIN_REPEATS: Final = 4
"""A phrase counts as repeated when it stands there this many times in a row (three can be emphasis)."""

MIN_REPEATED_UNITS: Final = 12
"""...and when the run is at least this many words long, so that "no no no no" or ``0, 0, 0, 0`` is not a
loop."""

MAX_PERIOD_UNITS: Final = 60
"""Longest phrase that is looked for, in words (or CJK characters)."""

_UNITS: Final = re.compile(r"[\u3400-\u9fff]|\w+|[^\w\s]")

_BLANKS: Final = re.compile(r"\s{40,}")
"""White space without end is the commonest loop of a model that was asked for JSON (vllm 40080)."""

_PREAMBLE: Final = re.compile(
    r"\s*(?:sure\b|certainly\b|of course\b|absolutely\b|okay\b[,!. ]|here(?:'s|\u2019s| is| are)\b|"
    r"as an ai\b|thank you for\b|based on the (?:information|text|message|description)\b|"
    r"the (?:json|output|answer|result) (?:is|would be)\b|"
    r"\u597d\u7684|\u5f53\u7136|\u4ee5\u4e0b\u662f|\u6839\u636e\u60a8|\u4f5c\u4e3a(?:\u4e00\u4e2a|\u4e00\u540d)?AI)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What one output does wrong beside its content.

    Attributes:
        never_stopped: It ran into max_tokens.
        template_residue: Tokens of a chat template are left in it.
        repetition: It repeats a phrase over and over.
        preamble: It begins with a phrase such as "Sure, here is".
    """

    never_stopped: bool
    template_residue: bool
    repetition: bool
    preamble: bool

    def to_json(self) -> dict[str, bool]:
        """Return the row form."""
        return {
            "never_stopped": self.never_stopped,
            "template_residue": self.template_residue,
            "repetition": self.repetition,
            "preamble": self.preamble,
        }


def observe_behaviour(*, raw_text: str, finish_reason: str, special_tokens: Sequence[str]) -> Behaviour:
    """Look at one generated output.

    Args:
        raw_text: The output with special tokens spelled out, without the final stop token: what a client
            sees hides special tokens, and so hides the residue.
        finish_reason: "stop" or "length".
        special_tokens: Texts of the tokenizer's special tokens.
    """
    return Behaviour(
        never_stopped=finish_reason == "length",
        template_residue=has_template_residue(raw_text, special_tokens),
        repetition=has_repetition(raw_text),
        preamble=_PREAMBLE.match(raw_text) is not None,
    )


def has_template_residue(raw_text: str, special_tokens: Sequence[str]) -> bool:
    """Say whether a chat template's marker or a special token is left in the text."""
    return any(marker in raw_text for marker in (*TEMPLATE_MARKERS, *special_tokens) if marker)


def has_repetition(text: str) -> bool:
    """Say whether a phrase stands at least ``MIN_REPEATS`` times in a row, over at least
    ``MIN_REPEATED_UNITS`` words.

    A run of period p is a stretch in which every unit equals the one p before it; a stretch of (k - 1) * p
    such units is a phrase of p units k times in a row. Linear in the text for each period.
    """
    if _BLANKS.search(text):
        return True
    units = _UNITS.findall(text)
    for period in range(1, min(MAX_PERIOD_UNITS, len(units) // MIN_REPEATS) + 1):
        needed = max((MIN_REPEATS - 1) * period, MIN_REPEATED_UNITS - period)
        run = 0
        for before, unit in zip(units, units[period:], strict=False):
            run = run + 1 if unit == before else 0
            if run >= needed:
                return True
    return False
