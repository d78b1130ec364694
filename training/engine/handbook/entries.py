"""Reading the handbook's texts, strictly: a shipped file with a fault is refused with all its faults."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from registry.artifacts.findings import shown
from registry.artifacts.json_files import JsonFileError, load_json_object
from training.engine.errors import Fault, TrainingEngineError
from training.engine.handbook.rows import HandbookRow, SymptomClass

SCHEMA_VERSION: Final = 1
LANGUAGES: Final = ("en", "zh")
_FOLDER: Final = Path(__file__).parent
_TEXTS: Final = ("symptom", "source")
_LISTS: Final = {"causes": 1, "treatment": 1, "detectors": 0}
"""Lists of texts, and how many texts each must have at least."""
_KEYS: Final = ("code", "class", *_TEXTS, *_LISTS)


class HandbookInvalid(TrainingEngineError):
    """A file of the handbook is not as it must be; ``faults`` lists all that is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandbookEntry:
    """One row of the handbook in one language.

    Attributes:
        code: Of the row.
        symptom_class: Decides what is treated first.
        symptom: What is seen, in one sentence.
        causes: The usual ones, the most frequent first; at least one.
        treatment: What to do, in this order; at least one, and the first is the first treatment.
        detectors: Codes of the rules and checks that recognise the row, with the part that they belong to:
            "monitor/loss-flat". May be empty where only a person or a check without a code of its own sees
            it.
        source: Sections of the handbook and the guide, and ids of MISSION.
    """

    code: HandbookRow
    symptom_class: SymptomClass
    symptom: str
    causes: tuple[str, ...]
    treatment: tuple[str, ...]
    detectors: tuple[str, ...]
    source: str

    @property
    def first_treatment(self) -> str:
        """What to do first."""
        return self.treatment[0]


def read_handbook(language: str) -> tuple[HandbookEntry, ...]:
    """Return all rows in the order of the handbook.

    Args:
        language: "en" or "zh".

    Raises:
        ValueError: For another language.
        HandbookInvalid: ``handbook-invalid`` with every fault.
    """
    if language not in LANGUAGES:
        raise ValueError(f"the handbook is written in {', '.join(LANGUAGES)}, not in {shown(language)}")
    try:
        document = load_json_object(_FOLDER / f"{language}.json")
    except (OSError, JsonFileError) as error:
        raise HandbookInvalid("handbook-invalid", f"The handbook cannot be read: {error}") from error
    return parse_handbook(document, language)


def parse_handbook(document: Mapping[str, Any], language: str) -> tuple[HandbookEntry, ...]:
    """Read a handbook's JSON.

    Args:
        document: ``{"schema_version", "language", "rows"}``.
        language: That it must have.

    Raises:
        HandbookInvalid: ``handbook-invalid`` with every fault: unknown, missing or doubled rows, wrong
            classes, missing or empty texts.
    """
    faults = list(_iterate_faults(document, language))
    if faults:
        listed = "; ".join(f"{fault.where}: {fault.message}" for fault in faults)
        raise HandbookInvalid(
            "handbook-invalid",
            f"The handbook ({language}) has {len(faults)} fault(s): {listed}",
            faults=faults,
        )
    return tuple(_read_row(row) for row in document["rows"])


def _iterate_faults(document: Mapping[str, Any], language: str) -> Iterator[Fault]:
    for key, expected in (("schema_version", SCHEMA_VERSION), ("language", language)):
        if document.get(key) != expected:
            yield Fault(code="wrong-header", where=key, message=f"must be {expected!r}")
    rows = document.get("rows")
    if not isinstance(rows, list):
        yield Fault(code="rows-missing", where="rows", message="must be a list")
        return
    seen: set[str] = set()
    for index, row in enumerate(rows):
        where = f"rows[{index}]"
        if not isinstance(row, Mapping):
            yield Fault(code="row-invalid", where=where, message="must be an object")
            continue
        yield from _iterate_row_faults(row, where)
        code = row.get("code")
        if code in seen:
            yield Fault(code="row-doubled", where=where, message=f"{shown(str(code))} is there already")
        seen.add(str(code))
    for code in HandbookRow:
        if code not in seen:
            yield Fault(code="row-missing", where="rows", message=f"{code.value} is not there")


def _iterate_row_faults(row: Mapping[str, Any], where: str) -> Iterator[Fault]:
    for key in row:
        if key not in _KEYS:
            yield Fault(code="unknown-key", where=f"{where}.{shown(str(key))}", message="is not known")
    code = row.get("code")
    if code not in set(HandbookRow):
        yield Fault(code="row-unknown", where=f"{where}.code", message=f"{shown(json.dumps(code))} is no row")
    elif row.get("class") != HandbookRow(code).symptom_class:
        expected = HandbookRow(code).symptom_class.value
        yield Fault(code="wrong-class", where=f"{where}.class", message=f"must be {expected}")
    for key in _TEXTS:
        if not _is_text(row.get(key)):
            yield Fault(code="text-missing", where=f"{where}.{key}", message="must be a text")
    for key, least in _LISTS.items():
        if not _are_texts(row.get(key), least):
            message = f"must be a list of {'texts' if least else 'codes'}, at least {least}"
            yield Fault(code="texts-missing", where=f"{where}.{key}", message=message)


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _are_texts(value: Any, least: int) -> bool:
    return isinstance(value, list) and len(value) >= least and all(_is_text(item) for item in value)


def _read_row(row: Mapping[str, Any]) -> HandbookEntry:
    lists: dict[str, Sequence[str]] = {key: row[key] for key in _LISTS}
    return HandbookEntry(
        code=HandbookRow(row["code"]),
        symptom_class=SymptomClass(row["class"]),
        symptom=row["symptom"],
        causes=tuple(lists["causes"]),
        treatment=tuple(lists["treatment"]),
        detectors=tuple(lists["detectors"]),
        source=row["source"],
    )
