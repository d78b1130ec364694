"""Column shapes that several tables share."""

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models

SHA256_LENGTH = 64
MAX_NAME_LENGTH = 96

validate_name = RegexValidator(
    r"\A[a-z0-9](?:[a-z0-9._-]{0,94}[a-z0-9])?\Z",
    "Use 1 to 96 lower-case letters, digits, '.', '_' or '-', beginning and ending with a letter or digit.",
)


def sha256_field(**options: object) -> "models.CharField[str, str]":
    """A column for 64 lower-case hexadecimal digits."""
    return models.CharField(max_length=SHA256_LENGTH, **options)  # type: ignore[arg-type]


def name_field(**options: object) -> "models.CharField[str, str]":
    """A column for a name that may stand in an address, a file name and a shell command."""
    return models.CharField(max_length=MAX_NAME_LENGTH, validators=[validate_name], **options)  # type: ignore[arg-type]


class Recorded(models.Model):
    """When a row was made and by whom.

    `created_by` is null for rows that the system made by itself, and kept when the user is deleted.
    """

    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )

    class Meta:
        abstract = True
