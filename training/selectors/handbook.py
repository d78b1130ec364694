"""Reads the handbook."""

from django.db.models import Count, Q, QuerySet

from registry.services.names import near_misses
from training.choices import HandbookLanguage, IncidentState
from training.errors import TrainingNotFound
from training.models import Symptom, SymptomText


def list_symptoms() -> QuerySet[Symptom]:
    """All rows in the order of the handbook, each with `num_incidents`, dismissed ones left out."""
    occurred = Count("incidents", filter=~Q(incidents__state=IncidentState.DISMISSED))
    rows = Symptom.objects.select_related("edited_by").prefetch_related("texts")
    return rows.annotate(num_incidents=occurred).order_by("position", "code")


def get_symptom(code: str) -> Symptom:
    """One row.

    Raises:
        TrainingNotFound: there is none of this code.
    """
    row = list_symptoms().filter(code=code).first()
    if row is None:
        near = near_misses(code, Symptom.objects.values_list("code", flat=True))
        raise TrainingNotFound("handbook-row-not-found", row=code, near=near)
    return row


def choose_text(row: Symptom, language: str = HandbookLanguage.EN) -> SymptomText | None:
    """The row's text in a language, or in another one where it has none; None for a row without any."""
    texts = {text.language: text for text in row.texts.all()}
    return texts.get(language) or next(iter(texts.values()), None)


def name_symptom(row: Symptom, language: str = HandbookLanguage.EN) -> str:
    """What is seen, in one sentence; the code where the row has no text."""
    text = choose_text(row, language)
    return row.code if text is None else text.symptom
