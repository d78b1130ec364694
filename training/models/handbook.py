"""The handbook as people of this server know it (MISSION T5, T6): symptoms, their causes, what to do.

Its first rows come from the files that this version ships; people edit them and add rows of their own.
"""

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models

from registry.models.fields import Recorded
from training.choices import HandbookLanguage, SymptomOrigin
from training.engine.handbook.rows import SymptomClass

MAX_CODE_CHARACTERS = 64
MAX_SYMPTOM_CHARACTERS = 500
MAX_SOURCE_CHARACTERS = 300

validate_code = RegexValidator(
    r"\A[a-z0-9]+(?:-[a-z0-9]+)*\Z",
    "Use lower-case letters and digits, in words joined by '-'.",
)


class Symptom(Recorded):
    """One row of the handbook.

    `detectors` are the codes of rules and checks that recognise it. A row with `edited_at` was edited by
    people, and no newer shipped text takes the place of theirs. `revision` grows by one with each change.
    """

    code = models.CharField(max_length=MAX_CODE_CHARACTERS, unique=True, validators=[validate_code])
    symptom_class = models.CharField(
        "class", max_length=16, choices=[(item.value, item.value) for item in SymptomClass]
    )
    position = models.PositiveIntegerField()
    detectors = models.JSONField(default=list, blank=True)
    origin = models.CharField(max_length=8, choices=SymptomOrigin.choices)
    edited_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    edited_at = models.DateTimeField(null=True, blank=True)
    revision = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ("position", "code")
        verbose_name = "handbook row"
        verbose_name_plural = "handbook"

    def __str__(self) -> str:
        return self.code


class SymptomText(models.Model):
    """The text of a row in one language; `causes` and `treatment` are lists of texts, the main one first."""

    row = models.ForeignKey(Symptom, on_delete=models.CASCADE, related_name="texts")
    language = models.CharField(max_length=2, choices=HandbookLanguage.choices)
    symptom = models.CharField(max_length=MAX_SYMPTOM_CHARACTERS)
    causes = models.JSONField(default=list)
    treatment = models.JSONField(default=list)
    source = models.CharField(max_length=MAX_SOURCE_CHARACTERS, blank=True, default="")

    class Meta:
        ordering = ("language",)
        constraints = (models.UniqueConstraint(fields=("row", "language"), name="symptom_text_unique"),)

    def __str__(self) -> str:
        return f"{self.row_id} ({self.language})"
