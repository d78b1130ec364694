"""Does an output count as JSON? Strict decides; lenient is only reported beside it (DESIGN section 6, F5).

Strict: the whole output is one JSON value after at most one outer code fence is removed, with no duplicate
key, no NaN or Infinity and nothing around it but white space. Lenient: a repair library finds an object or
an array in it.
"""

from dataclasses import dataclass
from typing import Any, Literal

from evaluation.engine.json_text import JsonTextError, parse_json

ParseLevel = Literal["strict", "lenient", "unparsed"]

FENCE = "```"
MAX_REPAIR_CHARACTERS = 100_000
"""Longer outputs are not repaired: repair is quadratic in places, and no answer of a task is so long."""


@dataclass(frozen=True, slots=True)
class ParsedOutput:
    """What came of reading one output.

    Attributes:
        level: How it could be read.
        value: The JSON value; None both for JSON null and when unparsed.
        reason: Why it is not strict; None when it is.
    """

    level: ParseLevel
    value: Any
    reason: str | None

    @property
    def is_strict(self) -> bool:
        """Whether the output counts as JSON."""
        return self.level == "strict"


def parse_output(text: str) -> ParsedOutput:
    """Read a model's output, strictly first."""
    try:
        return ParsedOutput("strict", parse_json(strip_outer_fence(text)), None)
    except JsonTextError as error:
        reason = str(error)
    value = _repair(text)
    return ParsedOutput("lenient" if value is not None else "unparsed", value, reason)


def strip_outer_fence(text: str) -> str:
    """Remove one code fence that encloses the whole text; any other text is returned as it is.

    The opening line may name a language in ASCII letters (```` ```json ````). A fence inside a JSON string
    is no outer fence, and a text with words before or after the fence keeps it (and is then not strict JSON).
    """
    stripped = text.strip()
    if not stripped.startswith(FENCE) or not stripped.endswith(FENCE):
        return text
    opening, newline, rest = stripped.partition("\n")
    language = opening[len(FENCE) :].strip()
    if not newline or not rest.endswith(FENCE) or not (language == "" or _is_language(language)):
        return text
    return rest[: -len(FENCE)]


def _is_language(name: str) -> bool:
    return name.isascii() and name.replace("-", "").replace("+", "").isalnum()


def _repair(text: str) -> dict[str, Any] | list[Any] | None:
    """Return the object or array that a repair finds, or None; prose is "repaired" to an empty string or
    list.
    """
    if len(text) > MAX_REPAIR_CHARACTERS or not any(bracket in text for bracket in "{["):
        return None
    # Only workers have json_repair; the web process imports this module for its types.
    from json_repair import repair_json

    try:
        value: Any = repair_json(text, return_objects=True)
    except (ValueError, RecursionError, IndexError):
        return None
    return value if isinstance(value, dict | list) and value else None
