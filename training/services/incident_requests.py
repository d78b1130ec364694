"""An incident as somebody writes it, and what can be wrong with it."""

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from registry.artifacts.findings import shown
from registry.errors import Fault
from registry.services.names import near_misses
from training.choices import CheckAnswer
from training.models import Symptom, TrainingRun
from training.models.incidents import MAX_TITLE_CHARACTERS

MAX_TEXT_CHARACTERS: Final = 10_000
MAX_RUN_ID_CHARACTERS: Final = 64
MAX_STEP: Final = 2**31 - 1
_CONTROLS: Final = frozenset(map(chr, range(32)))


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRequest:
    """An incident that a person opens or edits.

    Attributes:
        title: One line; never empty.
        symptom: Code of a row of the handbook; None for what the handbook does not know.
        training_run: Id of the run, "" without one.
        evaluation_run: Id of an evaluation as text, "" without one; it is not looked up.
        first_step: Where it begins; 0 is before the first step, None when it has no step.
        found: How it was found.
        cause: What it was, "" as long as nobody knows.
        fix: What was done about it.
    """

    title: str
    symptom: str | None = None
    training_run: str = ""
    evaluation_run: str = ""
    first_step: int | None = None
    found: str = ""
    cause: str = ""
    fix: str = ""


def list_request_faults(request: IncidentRequest) -> list[Fault]:
    """All that is wrong with an incident; [] when it may be kept."""
    return list(_iterate_faults(request))


def list_text_faults(texts: Mapping[str, str], *, answer: str | None = None) -> list[Fault]:
    """What is wrong with texts that must not be empty, and with an answer to the question for a check.

    Args:
        texts: Name of the field to text.
        answer: A `CheckAnswer`; None where none is given.
    """
    faults = [fault for name, text in texts.items() for fault in _text_faults(name, text, is_needed=True)]
    if answer is not None and answer not in CheckAnswer.values:
        message = f"must be one of {', '.join(CheckAnswer.values)}."
        faults.append(Fault(code="answer-unknown", message=message, where="/answer"))
    return faults


def _iterate_faults(request: IncidentRequest) -> Iterator[Fault]:
    yield from _line_faults("title", request.title, MAX_TITLE_CHARACTERS, is_needed=True)
    if request.symptom is not None and not Symptom.objects.filter(code=request.symptom).exists():
        near = near_misses(request.symptom, Symptom.objects.values_list("code", flat=True))
        message = f"The handbook has no row {shown(request.symptom)!r}.{near}"
        yield Fault(code="handbook-row-not-found", message=message, where="/symptom")
    if request.training_run and not _has_run(request.training_run):
        message = f"There is no training run {shown(request.training_run)}."
        yield Fault(code="training-run-not-found", message=message, where="/training_run")
    yield from _line_faults("evaluation_run", request.evaluation_run, MAX_RUN_ID_CHARACTERS, is_needed=False)
    if request.first_step is not None and not 0 <= request.first_step <= MAX_STEP:
        message = f"must be a whole number from 0 to {MAX_STEP}."
        yield Fault(code="first-step-invalid", message=message, where="/first_step")
    for name in ("found", "cause", "fix"):
        yield from _text_faults(name, getattr(request, name), is_needed=False)


def _has_run(run_id: str) -> bool:
    try:
        return TrainingRun.objects.filter(pk=uuid.UUID(run_id)).exists()
    except ValueError:
        return False


def _line_faults(name: str, text: str, max_chars: int, *, is_needed: bool) -> Iterator[Fault]:
    yield from _text_faults(name, text, is_needed=is_needed, max_chars=max_chars)
    if _CONTROLS & set(text) - {"\0"}:
        message = "Give one line without control characters."
        yield Fault(code="line-invalid", message=message, where=f"/{name}")


def _text_faults(
    name: str, text: str, *, is_needed: bool, max_chars: int = MAX_TEXT_CHARACTERS
) -> Iterator[Fault]:
    if is_needed and not text.strip():
        yield Fault(code="text-missing", message="A text is needed here.", where=f"/{name}")
    if len(text) > max_chars:
        message = f"{len(text)} characters; at most {max_chars} are allowed."
        yield Fault(code="text-too-long", message=message, where=f"/{name}")
    if "\0" in text:
        yield Fault(code="unstorable-text", message="A NUL character cannot be stored.", where=f"/{name}")
