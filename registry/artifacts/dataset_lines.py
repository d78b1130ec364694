"""Checks of a dataset's `data.jsonl`, line by line, with every fault named by its line.

One JSON object a line. Task roles (train, holdout, ood, general) hold a conversation that ends with the
assistant's reference answer; a canary may lack it; a regression line ends with the user's message and holds a
dimension and a scoring rule. Keys that are not known here, such as `source`, are allowed. The evaluation
engine reads what passes here by the same rules; the registry may not import it. Standard library only.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from registry.artifacts.findings import Finding, shown

MAX_FAULTS = 50
"""Faults of one file beyond this many are counted, not described."""
MAX_LINE_BYTES = 1 << 20
MAX_ID_CHARS = 128
MAX_LABEL_CHARS = 64
MAX_TAG_VALUES = 50
"""Values of one tag beyond this many are counted together in the histogram."""

_OTHER = "…"
_ROLES_WITHOUT_ANSWER = frozenset({"regression", "canary"})
_MESSAGE_ROLES = ("system", "user", "assistant")
_REFERENCE_SOURCES = ("person", "rule", "model")
_VERIFIED_SOURCES = frozenset({"person", "rule"})
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_Found = list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetSummary:
    """What a `data.jsonl` holds and what is wrong with it.

    Attributes:
        num_examples: lines without fault.
        num_verified: of these, lines whose reference was made by a person or a rule, or confirmed by a
            person.
        tags: for each tag (and `category`, `dimension`) how many examples have each of its values.
        faults: the first `MAX_FAULTS` faults; `where` is "data.jsonl line 17".
        num_faults: how many faults there are.
    """

    num_examples: int
    num_verified: int
    tags: Mapping[str, Mapping[str, int]]
    faults: tuple[Finding, ...]
    num_faults: int

    @property
    def is_valid(self) -> bool:
        """Whether there is no fault."""
        return self.num_faults == 0


def check_dataset_lines(
    lines: Iterable[bytes], *, role: str, file_name: str = "data.jsonl"
) -> DatasetSummary:
    """Read and check one JSONL file.

    Args:
        lines: the lines as bytes, as a file opened in binary mode gives them; blank lines are skipped.
        role: train, holdout, ood, regression, canary or general; decides which keys a line needs.
        file_name: named in the faults.
    """
    checker = _Checker(role, file_name)
    for number, line in enumerate(lines, start=1):
        if line.strip():
            checker.read(line, number)
    return checker.summary()


class _Checker:
    """Collects what one file holds."""

    def __init__(self, role: str, file_name: str) -> None:
        self.role = role
        self.file_name = file_name
        self.first_lines: dict[str, int] = {}
        self.tags: dict[str, Counter[str]] = {}
        self.faults: list[Finding] = []
        self.num_examples = self.num_verified = self.num_faults = 0

    def read(self, line: bytes, number: int) -> None:
        document, found = _decode_line(line)
        if document is not None:
            found = [*_check_line(document, self.role), *self._check_unique(document, number)]
        if found:
            self._add_faults(found, f"{self.file_name} line {number}")
        elif document is not None:
            self.num_examples += 1
            self.num_verified += _is_verified(document)
            self._count_tags(document)

    def summary(self) -> DatasetSummary:
        if not self.num_examples and not self.num_faults:
            self._add_faults([("no-examples", "The file holds no example.")], self.file_name)
        return DatasetSummary(
            num_examples=self.num_examples,
            num_verified=self.num_verified,
            tags={tag: _top(counts) for tag, counts in sorted(self.tags.items())},
            faults=tuple(self.faults),
            num_faults=self.num_faults,
        )

    def _check_unique(self, document: Mapping[str, Any], number: int) -> _Found:
        example_id = document.get("id")
        if not isinstance(example_id, str):
            return []
        first = self.first_lines.setdefault(example_id, number)
        if first == number:
            return []
        return [("duplicate-id", f"The id {shown(example_id)!r} was already used in line {first}.")]

    def _add_faults(self, found: _Found, where: str) -> None:
        self.num_faults += len(found)
        room = MAX_FAULTS - len(self.faults)
        self.faults.extend(Finding.error(code, message, where=where) for code, message in found[:room])

    def _count_tags(self, document: Mapping[str, Any]) -> None:
        labels = dict(document.get("tags") or {})
        labels.update({key: document[key] for key in ("category", "dimension") if document.get(key)})
        for tag, value in labels.items():
            self.tags.setdefault(tag, Counter())[value] += 1


def _top(counts: Counter[str]) -> dict[str, int]:
    common = counts.most_common(MAX_TAG_VALUES)
    num_rest = counts.total() - sum(num for _, num in common)
    return dict(common) | ({_OTHER: num_rest} if num_rest else {})


def _is_verified(document: Mapping[str, Any]) -> bool:
    return bool(document.get("confirmed_by")) or document.get("reference_source") in _VERIFIED_SOURCES


def _decode_line(line: bytes) -> tuple[dict[str, Any] | None, _Found]:
    if len(line) > MAX_LINE_BYTES:
        return None, [
            ("line-too-long", f"The line has {len(line)} bytes; at most {MAX_LINE_BYTES} are read.")
        ]
    if line.startswith(_BYTE_ORDER_MARK):
        return None, [
            ("byte-order-mark", "The line begins with a byte order mark; save the file as plain UTF-8.")
        ]
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        return None, [
            ("not-utf-8", f"Byte {error.start + 1} of the line is 0x{line[error.start]:02x}: not UTF-8.")
        ]
    try:
        document = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        return None, [("not-json", f"The line is no JSON value: {shown(error)}.")]
    if not isinstance(document, dict):
        return None, [("not-an-object", "The line must be a JSON object.")]
    if _holds_unstorable(document):
        return None, [("unstorable-text", "A text holds a NUL character or half of a surrogate pair.")]
    return document, []


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} is given twice")
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _holds_unstorable(value: Any) -> bool:
    match value:
        case str():
            return _UNSTORABLE.search(value) is not None
        case dict():
            return any(_holds_unstorable(key) or _holds_unstorable(item) for key, item in value.items())
        case list():
            return any(map(_holds_unstorable, value))
    return False


def _check_line(document: Mapping[str, Any], role: str) -> _Found:
    found: _Found = []
    example_id = document.get("id")
    if not isinstance(example_id, str) or not example_id.strip():
        found.append(("missing-id", "id must be a text that is not empty."))
    elif len(example_id) > MAX_ID_CHARS:
        found.append(("id-too-long", f"id has more than {MAX_ID_CHARS} characters."))
    found.extend(_check_messages(document.get("messages"), role))
    found.extend(_check_labels(document))
    if role == "regression":
        found.extend(_check_regression(document))
    return found


def _check_messages(messages: Any, role: str) -> _Found:
    if messages is None:
        return [("missing-messages", "messages is missing.")]
    if not isinstance(messages, list) or not messages:
        return [("messages-invalid", "messages must be a list that is not empty.")]
    faults = ((index, _message_fault(message, index)) for index, message in enumerate(messages))
    found = [("messages-invalid", f"messages[{index}] {fault}.") for index, fault in faults if fault]
    return found or _check_order([message["role"] for message in messages], messages[-1]["content"], role)


def _message_fault(message: Any, index: int) -> str:
    if not isinstance(message, dict):
        return "must be an object with role and content"
    if message.get("role") not in _MESSAGE_ROLES:
        return f"has role {shown(message.get('role'))!r}, which is none of {', '.join(_MESSAGE_ROLES)}"
    if not isinstance(message.get("content"), str):
        return "must have a text as content"
    return "is a system message; only the first may be" if message["role"] == "system" and index > 0 else ""


def _check_order(roles: Sequence[str], last_content: str, role: str) -> _Found:
    if "user" not in roles:
        return [("messages-invalid", "messages must hold a user message.")]
    last = roles[-1]
    if last == "system" or (last == "assistant" and len(roles) > 1 and roles[-2] != "user"):
        return [("messages-invalid", "messages must end with a user message and, where wanted, its answer.")]
    if role == "regression" and last == "assistant":
        return [("messages-invalid", "messages must end with the user's; put the answer into reference.")]
    if role in _ROLES_WITHOUT_ANSWER:
        return []
    if last != "assistant":
        return [("missing-reference", "The last message must be the assistant's: the answer that is wanted.")]
    return [] if last_content.strip() else [("missing-reference", "The assistant's last message is empty.")]


def _check_labels(document: Mapping[str, Any]) -> _Found:
    found: _Found = []
    tags = document.get("tags")
    if tags is not None and not (isinstance(tags, dict) and all(isinstance(v, str) for v in tags.values())):
        found.append(("tags-invalid", "tags must be an object of texts."))
    category = document.get("category")
    if category is not None and not (isinstance(category, str) and len(category) <= MAX_LABEL_CHARS):
        found.append(
            ("category-invalid", f"category must be a text of at most {MAX_LABEL_CHARS} characters.")
        )
    if document.get("confirmed_by") is not None and not isinstance(document["confirmed_by"], str):
        found.append(("confirmed-by-invalid", "confirmed_by must be a text."))
    if document.get("reference_source") not in (None, *_REFERENCE_SOURCES):
        message = f"reference_source must be one of {', '.join(_REFERENCE_SOURCES)}."
        found.append(("reference-source-invalid", message))
    return found


def _check_regression(document: Mapping[str, Any]) -> _Found:
    found: _Found = []
    dimension = document.get("dimension")
    if not isinstance(dimension, str) or not dimension.strip() or len(dimension) > MAX_LABEL_CHARS:
        message = f"dimension must be a text of 1 to {MAX_LABEL_CHARS} characters."
        found.append(("missing-dimension", message))
    if document.get("reference") is not None and not isinstance(document["reference"], str):
        found.append(("reference-invalid", "reference must be a text."))
    fault = scoring_fault(document.get("scoring"))
    return [*found, ("scoring-invalid", fault)] if fault else found


def scoring_fault(scoring: Any) -> str:
    """What is wrong with a regression line's `scoring` object; "" when nothing is.

    Forms: exact (answer), contains (values, mode any|all), regex (pattern), choice (answer, choices, labels?,
        question?).
    """
    if not isinstance(scoring, Mapping):
        return "scoring must be an object."
    kind = scoring.get("type")
    match kind:
        case "exact":
            fault = (
                "" if _is_text(scoring.get("answer")) else "scoring.answer must be a text that is not empty."
            )
        case "contains":
            fault = _contains_fault(scoring)
        case "regex":
            fault = _regex_fault(scoring.get("pattern"))
        case "choice":
            fault = _choice_fault(scoring)
        case _:
            return f"scoring.type must be one of exact, contains, regex, choice, not {shown(kind)!r}."
    if not fault and not isinstance(scoring.get("case_sensitive", False), bool):
        return "scoring.case_sensitive must be true or false."
    return fault


def _contains_fault(scoring: Mapping[str, Any]) -> str:
    if not _is_texts(scoring.get("values")):
        return "scoring.values must be a list of texts that are not empty."
    mode = scoring.get("mode", "any")
    return "" if mode in ("any", "all") else f"scoring.mode must be any or all, not {shown(mode)!r}."


def _regex_fault(pattern: Any) -> str:
    if not isinstance(pattern, str) or not pattern:
        return "scoring.pattern must be a text that is not empty."
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"scoring.pattern is no regular expression: {shown(error)}."
    return ""


def _choice_fault(scoring: Mapping[str, Any]) -> str:
    choices, question = scoring.get("choices"), scoring.get("question")
    if not isinstance(choices, list) or not _is_texts(choices) or len(choices) < 2:
        return "scoring.choices must be a list of at least two texts that are not empty."
    labels = scoring.get("labels", [chr(ord("A") + index) for index in range(min(len(choices), 26))])
    if not _is_texts(labels) or len(labels) != len(choices) or len(set(labels)) != len(labels):
        return "scoring.labels must hold one label of its own for each choice."
    if scoring.get("answer") not in labels:
        return f"scoring.answer {shown(scoring.get('answer'))!r} is none of the labels."
    return (
        "" if question is None or _is_text(question) else "scoring.question must be a text that is not empty."
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(map(_is_text, value))
