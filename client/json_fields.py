"""Typed reading of JSON objects: a missing or mistyped member becomes an error that names it.

Unknown members are ignored, so that an older client works with a newer server.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from client.errors import UnexpectedAnswerError


@dataclass(frozen=True, slots=True)
class Fields:
    """A JSON object with a name for error messages.

    Attributes:
        source: The members.
        name: What the object is ("submission"), for error messages.
    """

    source: Mapping[str, object]
    name: str

    @classmethod
    def of(cls, value: object, name: str) -> "Fields":
        """Wrap a decoded JSON value; raise ``UnexpectedAnswerError`` when it is not an object."""
        if not isinstance(value, Mapping):
            raise UnexpectedAnswerError(
                "unexpected-answer", f"The server's {name} is not a JSON object but {type(value).__name__}."
            )
        return cls(value, name)

    def _wrong(self, key: str, wanted: str) -> UnexpectedAnswerError:
        found = "missing" if key not in self.source else f"of type {type(self.source[key]).__name__}"
        return UnexpectedAnswerError(
            "unexpected-answer",
            f"The server's {self.name} should have {wanted} in '{key}', but it is {found}. "
            "Client and server may be of different versions: see `assay doctor`.",
        )

    def text(self, key: str) -> str:
        """Return a text member."""
        value = self.source.get(key)
        if not isinstance(value, str):
            raise self._wrong(key, "text")
        return value

    def optional_text(self, key: str) -> str | None:
        """Return a text member, or None when it is null or missing."""
        return None if self.source.get(key) is None else self.text(key)

    def integer(self, key: str) -> int:
        """Return a whole-number member."""
        value = self.source.get(key)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(key, "a whole number")
        return value

    def optional_integer(self, key: str) -> int | None:
        """Return a whole-number member, or None when it is null or missing."""
        return None if self.source.get(key) is None else self.integer(key)

    def optional_number(self, key: str) -> float | None:
        """Return a number member as float, or None when it is null or missing."""
        value = self.source.get(key)
        if value is None:
            return None
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise self._wrong(key, "a number")
        return float(value)

    def boolean(self, key: str, *, default: bool | None = None) -> bool:
        """Return a true-or-false member; a missing one gives ``default`` unless that is None."""
        value = self.source.get(key, default)
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def nested(self, key: str) -> "Fields":
        """Return a member that is an object."""
        value = self.source.get(key)
        if not isinstance(value, Mapping):
            raise self._wrong(key, "an object")
        return Fields(value, f"{self.name}.{key}")

    def optional_nested(self, key: str) -> "Fields | None":
        """Return a member that is an object, or None when it is null or missing."""
        return None if self.source.get(key) is None else self.nested(key)

    def objects(self, key: str) -> tuple["Fields", ...]:
        """Return a member that is a list of objects; missing or null counts as empty."""
        value = self.source.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self._wrong(key, "a list")
        return tuple(Fields.of(item, f"{self.name}.{key}[{index}]") for index, item in enumerate(value))

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a member that is a list of texts; missing or null counts as empty."""
        value = self.source.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self._wrong(key, "a list of texts")
        return tuple(value)
