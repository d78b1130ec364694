"""Serializers of request bodies: a field that is not known is refused, with the nearest known names."""

from typing import Any

from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail, ValidationError

from registry.artifacts.findings import shown
from registry.models.fields import MAX_NAME_LENGTH, SHA256_LENGTH, validate_name
from registry.services.names import near_misses

MAX_REASON_CHARS = 2000
MAX_NOTES_CHARS = 10_000


class StrictSerializer(serializers.Serializer[Any]):
    """Base of the serializers of request bodies; all faults come back at once."""

    def to_internal_value(self, data: Any) -> Any:
        """The checked values.

        Raises:
            ValidationError: faults of fields, and unknown fields (code `unknown-field`).
        """
        faults: dict[str, Any] = {}
        try:
            values = super().to_internal_value(data)
        except ValidationError as error:
            values, faults = None, dict(error.detail) if isinstance(error.detail, dict) else {}
            if not faults:
                raise
        known = [name for name, field in self.fields.items() if not field.read_only]
        for key in data:
            if key not in known:
                message = f"There is no field {shown(key)!r} here.{near_misses(str(key), known)}"
                faults[str(key)] = [ErrorDetail(message, code="unknown-field")]
        if faults:
            raise ValidationError(faults)
        return values


class NameField(serializers.CharField):
    """A name of something in the registry."""

    def __init__(self, **options: Any) -> None:
        """Takes what `CharField` takes, besides the length."""
        super().__init__(max_length=MAX_NAME_LENGTH, validators=[validate_name], **options)


class DigestField(serializers.RegexField):
    """64 lower-case hexadecimal digits."""

    def __init__(self, **options: Any) -> None:
        """Takes what `RegexField` takes, besides the expression."""
        message = f"Give {SHA256_LENGTH} lower-case hexadecimal digits."
        super().__init__(r"\A[0-9a-f]{64}\Z", error_messages={"invalid": message}, **options)


class ReasonField(serializers.CharField):
    """Why something is done, in a person's words; never empty."""

    def __init__(self, **options: Any) -> None:
        """Takes what `CharField` takes, besides the length."""
        super().__init__(max_length=MAX_REASON_CHARS, **options)
