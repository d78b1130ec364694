"""A row of the handbook as somebody writes it, and what can be wrong with it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from django.core.exceptions import ValidationError

from registry.artifacts.findings import shown
from registry.errors import Fault
from training.choices import HandbookLanguage
from training.engine.handbook.rows import SymptomClass
from training.models.handbook import (
    MAX_CODE_CHARACTERS,
    MAX_SOURCE_CHARACTERS,
    MAX_SYMPTOM_CHARACTERS,
    validate_code,
)

MAX_ITEMS: Final = 20
MAX_ITEM_CHARACTERS: Final = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDraft:
    """The text of a row in one language, with the most frequent cause and the first treatment first."""

    symptom: str
    causes: tuple[str, ...]
    treatment: tuple[str, ...]
    source: str = ""

    def to_json(self) -> dict[str, Any]:
        """The columns of `SymptomText`."""
        return {
            key: list(value) if isinstance(value, tuple) else value for key, value in asdict(self).items()
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDraft:
    """A whole row; `texts` maps a `HandbookLanguage` to its text."""

    code: str
    symptom_class: str
    detectors: tuple[str, ...]
    texts: Mapping[str, TextDraft]

    def to_json(self) -> dict[str, Any]:
        """As it stands in the audit log."""
        return {
            "code": self.code,
            "class": self.symptom_class,
            "detectors": list(self.detectors),
            "texts": {language: text.to_json() for language, text in self.texts.items()},
        }


def list_draft_faults(draft: RowDraft) -> list[Fault]:
    """All that is wrong with a row; [] when it may be kept."""
    return list(_iterate_faults(draft))


def _iterate_faults(draft: RowDraft) -> Iterator[Fault]:
    if len(draft.code) > MAX_CODE_CHARACTERS or not _is_code(draft.code):
        message = (
            f"{shown(draft.code)!r} is no code: 1 to {MAX_CODE_CHARACTERS} lower-case letters and digits,"
        )
        yield Fault(code="code-invalid", message=f"{message} in words joined by '-'.", where="/code")
    classes = [item.value for item in SymptomClass]
    if draft.symptom_class not in classes:
        yield Fault(code="class-unknown", message=f"must be one of {', '.join(classes)}.", where="/class")
    yield from _list_faults(draft.detectors, "/detectors", num_least=0)
    if not draft.texts:
        message = "A row needs its text in at least one language."
        yield Fault(code="text-missing", message=message, where="/texts")
    for language, text in draft.texts.items():
        where = f"/texts/{shown(language)}"
        if language not in HandbookLanguage.values:
            message = f"must be one of {', '.join(HandbookLanguage.values)}."
            yield Fault(code="language-unknown", message=message, where=where)
        yield from _text_faults(text.symptom, f"{where}/symptom", MAX_SYMPTOM_CHARACTERS, is_needed=True)
        yield from _list_faults(text.causes, f"{where}/causes", num_least=1)
        yield from _list_faults(text.treatment, f"{where}/treatment", num_least=1)
        yield from _text_faults(text.source, f"{where}/source", MAX_SOURCE_CHARACTERS, is_needed=False)


def _is_code(text: str) -> bool:
    try:
        validate_code(text)
    except ValidationError:
        return False
    return True


def _list_faults(items: Sequence[str], where: str, *, num_least: int) -> Iterator[Fault]:
    if not num_least <= len(items) <= MAX_ITEMS:
        message = f"{len(items)} lines; {num_least} to {MAX_ITEMS} are allowed."
        yield Fault(code="num-lines-invalid", message=message, where=where)
    for index, item in enumerate(items[:MAX_ITEMS]):
        yield from _text_faults(item, f"{where}/{index}", MAX_ITEM_CHARACTERS, is_needed=True)


def _text_faults(text: str, where: str, max_chars: int, *, is_needed: bool) -> Iterator[Fault]:
    if is_needed and not text.strip():
        yield Fault(code="text-missing", message="A text is needed here.", where=where)
    if len(text) > max_chars:
        message = f"{len(text)} characters; at most {max_chars} are allowed."
        yield Fault(code="text-too-long", message=message, where=where)
    if "\0" in text:
        yield Fault(code="unstorable-text", message="A NUL character cannot be stored.", where=where)
