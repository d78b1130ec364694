"""The check ``template_tokens``: chat template and special tokens inside texts.

Such a token in a text is either split into other tokens than the template's, or worse, read as the real one:
the model then learns to write it (handbook, "output carries template marks").
"""

import re
from collections.abc import Mapping
from typing import Any

from registry.artifacts.findings import Severity, shown
from training.engine.data.checks.check import Check, CheckKind, DataFinding
from training.engine.data.checks.id_tally import KeyedTally
from training.engine.data.examples import Example

_MAX_TOKENS = 100
_SPECIAL = re.compile(
    r"<\|[A-Za-z0-9_ ▁-]{1,40}\|>"  # ChatML, Llama 3, Phi, GLM, GPT
    r"|<\uff5c[^\uff5c<>\n]{1,40}\uff5c>"  # DeepSeek
    r"|</?(?:start|end)_of_(?:turn|image|text)>"  # Gemma
    r"|</?(?:think|tool_call|tool_response|scratchpad)>"
    r"|<(?:bos|eos|extra_id_[0-9]{1,3}|reserved_[0-9]{1,5}|unused[0-9]{1,5})>"
    r"|\[/?INST\]|<</?SYS>>|\[(?:AVAILABLE_TOOLS|/AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|/TOOL_RESULTS)\]"
    r"|\[gMASK\]|<sop>|<eop>"
)
# Special in some vocabularies only, and words of people who write about models.
_DOUBTFUL = re.compile(r"<(?:pad|unk|mask|sep|cls)>|\[(?:CLS|SEP|MASK|UNK|PAD)\]")
# "<s>" is also a mark of HTML for struck-out text, and is one unless it begins the text or its partner ends
# it.
_BEGIN = re.compile(r"\s{0,20}<s>")
_END = re.compile(r"</s>\s{0,20}\Z")
_HEADING = re.compile(
    r"^###? ?(?:Instruction|Response|Human|Assistant|User|Input|Output|System):", re.MULTILINE | re.IGNORECASE
)
_TURN = re.compile(r"^(?:Human|Assistant)[ \t]?[:\uff1a]", re.MULTILINE)
_ROLES = (
    re.compile(r"^(?:Human|User|用户|人类)[ \t]?[:\uff1a]", re.MULTILINE),
    re.compile(r"^(?:Assistant|Bot|AI|ChatGPT|助手|机器人)[ \t]?[:\uff1a]", re.MULTILINE),
)
# Turns begin with one of these, and of role words both kinds are wanted.
_TURN_WORDS = ("Human", "Assistant", "User", "用户", "人类")
_MEANINGS = {
    "template-token": "the template token",
    "special-token": "the special token of some vocabularies",
    "turn-marker": "a line that begins a turn with",
    "role-words": "a conversation within one message with",
}
_REMEDY = (
    "Take the tokens out: the template adds them when the example is rendered. When a whole rendered "
    "conversation was stored as one text, split it into messages again."
)


class TemplateTokens:
    """The check at work."""

    def __init__(self) -> None:
        """Start with nothing found."""
        self._found: dict[tuple[str, Severity, str], KeyedTally[str]] = {}

    def add(self, example: Example) -> None:
        """Search all messages."""
        last = len(example.messages) - 1
        for index, message in enumerate(example.messages):
            is_answer = index == last and message.role == "assistant"
            place = "answer" if is_answer else f"{message.role} message"
            text = message.content
            self._add("template-token", Severity.ERROR, place, find_special_tokens(text), example)
            doubtful = [match.group() for match in _DOUBTFUL.finditer(text)] if _may_have_tokens(text) else []
            self._add("special-token", Severity.WARNING, place, doubtful, example)
            if not any(word in text for word in _TURN_WORDS):
                continue
            turns = [match.group() for match in _TURN.finditer(text)]
            roles = [match.group() for pattern in _ROLES if (match := pattern.search(text))]
            if turns and message.role == "assistant":
                self._add("turn-marker", Severity.ERROR, place, turns, example)
            elif len(roles) == len(_ROLES):
                # One such word begins a line of a form; both make a conversation inside of one message.
                self._add("role-words", Severity.WARNING, place, roles, example)

    def _add(self, code: str, severity: Severity, place: str, tokens: list[str], example: Example) -> None:
        for token in dict.fromkeys(tokens):
            tallies = self._found.setdefault((code, severity, place), KeyedTally(_MAX_TOKENS))
            tallies.add(token, example.example_id)

    def findings(self) -> tuple[DataFinding, ...]:
        """Return one finding for each token and place, errors first."""
        found = [
            DataFinding(
                code=code,
                severity=severity,
                message=f"{_MEANINGS[code]} {shown(token)} in {tally.count} examples ({place})",
                where=place,
                remedy=_REMEDY,
                num_examples=tally.count,
                example_ids=tuple(tally.ids),
                source="MISSION C1, T5",
            )
            for (code, severity, place), tallies in self._found.items()
            for token, tally in tallies.most_common()
        ]
        return tuple(sorted(found, key=lambda item: (item.severity != Severity.ERROR, -item.num_examples)))


def find_special_tokens(text: str) -> list[str]:
    """Return the template and special tokens in a text, in order, repeats kept."""
    found = [match.group() for match in _HEADING.finditer(text)] if "##" in text else []
    if not _may_have_tokens(text):
        return found
    found = [match.group() for match in _SPECIAL.finditer(text)] + found
    if _BEGIN.match(text):
        found.append("<s>")
    if _END.search(text[-40:]):
        found.append("</s>")
    return found


def _may_have_tokens(text: str) -> bool:
    return "<" in text or "[" in text


def _build(parameters: Mapping[str, Any]) -> Check:
    return TemplateTokens()


KIND = CheckKind(
    name="template_tokens",
    version=1,
    summary="Finds chat template and special tokens, and turns written as text, inside messages.",
    source="MISSION C1, T5",
    build=_build,
)
