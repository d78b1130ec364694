"""Style: the content is right, and it is said in another tone, length or dress than the references have; or
the habits of the house are missing that no prompt spells out (guide, section 1.1).
"""

from collections.abc import Iterator, Mapping
from typing import Final

from evaluation.engine.triage.kinds import FailureKind
from evaluation.engine.triage.signals import Case, Signal
from evaluation.engine.triage.values import Origin, general_path, label_text

CONFIDENCE: Final[Mapping[str, float]] = {
    "forbidden-phrase": 0.95,
    "too-long": 0.9,
    "preamble": 0.85,
    "closing-phrase": 0.85,
    "markdown": 0.75,
    "form-of-address": 0.75,
    "much-longer": 0.7,
    "emoji": 0.7,
}
"""What the sample's own checks state is certain; what only its reference shows is less so."""

BESIDE_WRONG_CONTENT: Final = 0.3
"""Where the content is wrong as well, style is not why the answer failed."""


LABELS_NOT_TAUGHT: Final = 0.45
"""Against the 0.6 of a guessed label: the rules disagree, and a person who knows the labels decides."""


def find_style(case: Case) -> Iterator[Signal]:
    """Give each mark of another style; a strong one only when the content is right."""
    judged = case.judged
    yield from _of_labels(case)
    for mark in judged.style:
        yield Signal(
            kind=FailureKind.STYLE,
            code=mark.code,
            confidence=CONFIDENCE[mark.code] if judged.is_content_right else BESIDE_WRONG_CONTENT,
            message=mark.message,
        )


def _of_labels(case: Case) -> Iterator[Signal]:
    """A label of the task in the right form, and the wrong one: perhaps nobody showed which to choose."""
    judged = case.judged
    is_formed = judged.parsed is None or (judged.parsed.is_strict and not judged.schema_errors)
    for item in judged.wrong if is_formed else ():
        record = case.labels.get(general_path(item.path))
        is_label = item.origin is Origin.LABEL and label_text(item.observed) in case.space.labels(item.path)
        if record is not None and record.is_chance and is_label:
            yield Signal(
                kind=FailureKind.STYLE,
                code="labels-not-taught",
                confidence=LABELS_NOT_TAUGHT,
                message=f"{item.path}: the form is right and the label is one of the task; which one is "
                "wanted may be a habit of the house that examples teach",
                evidence={"path": item.path},
            )
