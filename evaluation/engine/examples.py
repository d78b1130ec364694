"""Examples of the evaluation and training sets, and the checks of a ``data.jsonl`` (F1-F4).

One JSON object a line. Task roles (train, holdout, ood, general) and canaries hold a conversation whose last
message is the assistant's reference answer (a canary may lack it). Regression lines hold a conversation, a
dimension and a scoring rule. Keys that are not known here, such as ``source``, are kept.

The web process checks uploads with this module: no torch, no model.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args

from evaluation.engine.errors import Fault
from evaluation.engine.json_text import JsonTextError, find_unstorable_text, parse_json
from evaluation.engine.scoring.regression import ScoringRule, ScoringRuleError, parse_scoring_rule

Role = Literal["train", "holdout", "ood", "regression", "canary", "general"]

ROLES: Final[tuple[Role, ...]] = get_args(Role)

MAX_FAULTS: Final = 50
"""Faults of one file beyond this many are counted, not described."""

MAX_LINE_BYTES: Final = 2**20
"""A longer line is a fault: no conversation that a model can read is so long."""

MAX_ID_CHARACTERS: Final = 200

VERIFIED_SOURCES: Final = ("person", "rule")
"""Sources of a reference that count as verified: written by a person, or derived by a rule that cannot
err."""

_MESSAGE_ROLES: Final = ("system", "user", "assistant")
_REFERENCE_SOURCES: Final = ("person", "rule", "model")


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; ``role`` is system, user or assistant."""

    role: str
    content: str

    def to_json(self) -> dict[str, str]:
        """Return the form that chat templates take."""
        return {"role": self.role, "content": self.content}


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A conversation with the answer that is wanted.

    Attributes:
        id: Unique within its file.
        messages: The conversation without the reference answer; ends with a user message.
        reference: The answer that is wanted; None for a canary without one.
        tags: Free labels, for slices.
        category: Kind of example, for slices; None when not given.
        reference_source: Who made the reference: person, rule or model; None when not given.
        confirmed_by: The person who confirmed the reference; None when nobody did.
        extra: Every other key of the line.
    """

    id: str
    messages: tuple[Message, ...]
    reference: str | None
    tags: Mapping[str, str] = field(default_factory=dict)
    category: str | None = None
    reference_source: str | None = None
    confirmed_by: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_verified(self) -> bool:
        """Whether the reference counts as verified (F4): not by a model alone, and not of unknown origin."""
        return bool(self.confirmed_by) or self.reference_source in VERIFIED_SOURCES


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionExample(Example):
    """An example of general ability, passed or not by a rule of its own.

    Attributes:
        dimension: Ability that it tests, such as chat or refusal; drops are judged by dimension (F8).
        scoring: The rule.
    """

    dimension: str
    scoring: ScoringRule


AnyExample = Example | RegressionExample


@dataclass(frozen=True, slots=True)
class ParsedExamples:
    """The examples of one file and what is wrong with it.

    Attributes:
        examples: The lines without fault, in order.
        faults: The first ``MAX_FAULTS`` faults.
        num_faults: How many faults there are.
    """

    examples: tuple[AnyExample, ...]
    faults: tuple[Fault, ...]
    num_faults: int

    @property
    def num_verified(self) -> int:
        """How many of the examples have a verified reference."""
        return num_verified(self.examples)

    @property
    def is_verified(self) -> bool:
        """Whether there are examples and every one has a verified reference."""
        return bool(self.examples) and self.num_verified == len(self.examples)


def num_verified(examples: Iterable[AnyExample]) -> int:
    """Count the examples whose reference is verified (see ``Example.is_verified``)."""
    return sum(example.is_verified for example in examples)


def parse_examples(lines: Iterable[bytes], role: Role, file_name: str = "data.jsonl") -> ParsedExamples:
    """Read and check one JSONL file.

    Args:
        lines: The lines of the file as bytes, as a file opened in binary mode gives them.
        role: What the set is for; decides which keys a line needs.
        file_name: Named in the faults.

    Returns:
        The sound examples and all faults; an empty file is a fault. White-space-only lines are skipped.
    """
    examples: list[AnyExample] = []
    faults: list[Fault] = []
    num_faults = 0
    first_lines: dict[str, int] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        example, found = _read_line(line, role, first_lines, number)
        num_faults += len(found)
        faults.extend(
            Fault(code, message, f"{file_name} line {number}")
            for code, message in found[: MAX_FAULTS - len(faults)]
        )
        if example is not None:
            examples.append(example)
    if not examples and not faults:
        faults, num_faults = [Fault("no-examples", "the file holds no example", file_name)], 1
    return ParsedExamples(tuple(examples), tuple(faults), num_faults)


_Found = list[tuple[str, str]]


def _read_line(
    line: bytes, role: Role, first_lines: dict[str, int], number: int
) -> tuple[AnyExample | None, _Found]:
    document, found = _decode_line(line)
    if document is None:
        return None, found
    found = _check_line(document, role)
    example_id = document.get("id")
    if isinstance(example_id, str) and example_id:
        first = first_lines.setdefault(example_id, number)
        if first != number:
            found.append(("duplicate-id", f"id {example_id!r} was already used in line {first}"))
    if found:
        return None, found
    return _build_example(document, role), []


def _decode_line(line: bytes) -> tuple[dict[str, Any] | None, _Found]:
    if len(line) > MAX_LINE_BYTES:
        return None, [("line-too-long", f"the line has {len(line)} bytes; at most {MAX_LINE_BYTES} are read")]
    if line.startswith(b"\xef\xbb\xbf"):
        return None, [("byte-order-mark", "starts with a byte order mark; save the file as plain UTF-8")]
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return None, [
            ("not-utf-8", f"is not UTF-8: byte {error.start + 1} of the line is 0x{line[error.start]:02x}")
        ]
    try:
        document = parse_json(text)
    except JsonTextError as error:
        return None, [("not-json", f"is not a JSON value: {error}")]
    if not isinstance(document, dict):
        return None, [("not-an-object", f"must be a JSON object, not {_json_type(document)}")]
    reason = find_unstorable_text(document)
    if reason is not None:
        return None, [("unstorable-text", reason)]
    return document, []


def _check_line(document: Mapping[str, Any], role: Role) -> _Found:
    found: _Found = []
    example_id = document.get("id")
    if not isinstance(example_id, str) or not example_id.strip():
        found.append(("missing-id", "id must be a text that is not empty"))
    elif len(example_id) > MAX_ID_CHARACTERS:
        found.append(("id-too-long", f"id has more than {MAX_ID_CHARACTERS} characters"))
    found.extend(_check_messages(document.get("messages"), role))
    found.extend(_check_labels(document))
    if role == "regression":
        found.extend(_check_regression(document))
    return found


def _check_messages(messages: Any, role: Role) -> _Found:
    if messages is None:
        return [("missing-messages", "messages is missing")]
    if not isinstance(messages, list) or not messages:
        return [("messages-invalid", "messages must be a list that is not empty")]
    found: _Found = []
    for position, message in enumerate(messages):
        fault = _check_message(message, position)
        if fault is not None:
            found.append(("messages-invalid", f"messages[{position}] {fault}"))
    return found or _check_order([message["role"] for message in messages], messages[-1]["content"], role)


def _check_message(message: Any, position: int) -> str | None:
    if not isinstance(message, dict):
        return "must be an object with role and content"
    if message.get("role") not in _MESSAGE_ROLES:
        return f"has role {message.get('role')!r}, which is none of {', '.join(_MESSAGE_ROLES)}"
    if not isinstance(message.get("content"), str):
        return f"must have a text as content, not {_json_type(message.get('content'))}"
    if message["role"] == "system" and position > 0:
        return "is a system message; only the first may be"
    return None


def _check_order(roles: Sequence[str], last_content: str, role: Role) -> _Found:
    if "user" not in roles:
        return [("messages-invalid", "messages must hold a user message")]
    last = roles[-1]
    if last == "system" or (last == "assistant" and len(roles) > 1 and roles[-2] != "user"):
        return [("messages-invalid", "messages must end with a user message and, where wanted, its answer")]
    if role == "regression" and last == "assistant":
        return [("messages-invalid", "messages must end with the user's; put the answer into reference")]
    if role in ("regression", "canary"):
        return []
    if last != "assistant":
        return [("missing-reference", "the last message must be the assistant's: the answer that is wanted")]
    return [] if last_content.strip() else [("missing-reference", "the assistant's last message is empty")]


def _check_labels(document: Mapping[str, Any]) -> _Found:
    found: _Found = []
    tags = document.get("tags")
    if tags is not None and not (
        isinstance(tags, dict) and all(isinstance(value, str) for value in tags.values())
    ):
        found.append(("tags-invalid", "tags must be an object of texts"))
    for key in ("category", "confirmed_by"):
        if document.get(key) is not None and not isinstance(document[key], str):
            found.append((f"{key.replace('_', '-')}-invalid", f"{key} must be a text"))
    if document.get("reference_source") not in (None, *_REFERENCE_SOURCES):
        found.append(
            ("reference-source-invalid", f"reference_source must be one of {', '.join(_REFERENCE_SOURCES)}")
        )
    return found


def _check_regression(document: Mapping[str, Any]) -> _Found:
    found: _Found = []
    dimension = document.get("dimension")
    if not isinstance(dimension, str) or not dimension.strip():
        found.append(("missing-dimension", "dimension must be a text that is not empty"))
    if document.get("reference") is not None and not isinstance(document["reference"], str):
        found.append(("reference-invalid", "reference must be a text"))
    try:
        parse_scoring_rule(document.get("scoring"))
    except ScoringRuleError as error:
        found.append(("scoring-invalid", str(error)))
    return found


_COMMON_KEYS: Final = frozenset(("id", "messages", "tags", "category", "reference_source", "confirmed_by"))
_REGRESSION_KEYS: Final = frozenset(("dimension", "scoring", "reference"))


def _build_example(document: Mapping[str, Any], role: Role) -> AnyExample:
    messages = tuple(Message(message["role"], message["content"]) for message in document["messages"])
    known = _COMMON_KEYS | (_REGRESSION_KEYS if role == "regression" else frozenset())
    common: dict[str, Any] = {
        "id": document["id"],
        "tags": document.get("tags") or {},
        "category": document.get("category"),
        "reference_source": document.get("reference_source"),
        "confirmed_by": document.get("confirmed_by") or None,
        "extra": {key: value for key, value in document.items() if key not in known},
    }
    if role == "regression":
        return RegressionExample(
            **common,
            messages=messages,
            reference=document.get("reference"),
            dimension=document["dimension"],
            scoring=parse_scoring_rule(document["scoring"]),
        )
    if messages[-1].role == "assistant":
        return Example(**common, messages=messages[:-1], reference=messages[-1].content)
    return Example(**common, messages=messages, reference=None)


def _json_type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")
