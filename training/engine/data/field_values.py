"""Which value an example has in a field that a person names: for strata, groups and balance."""

import json
from dataclasses import dataclass
from typing import Any, Final

from registry.artifacts.findings import shown
from training.engine.data.examples import Example
from training.engine.data.near_duplicates.answers import read_answer_fields
from training.engine.errors import ConfigInvalid

EXPECTED: Final = "a key such as category or group, tags/NAME, origin/NAME, or answer/FIELD of a JSON answer"
_SECTIONS: Final = ("tags", "origin", "answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSelector:
    """A field of examples.

    Attributes:
        section: "tags", "origin" or "answer"; "" for a key of the example itself.
        name: Of the field; inside an answer a path such as ``customer/region``.
    """

    section: str
    name: str

    def read(self, example: Example) -> str | None:
        """Return the value as text, or None when the example has none: the key is missing, its value is no
        text, number or truth value, or it is an empty text.
        """
        if self.section == "answer":
            leaf = (read_answer_fields(example.answer) or {}).get(f"/{self.name}")
            return None if leaf is None else _to_text(json.loads(leaf))
        if self.section == "tags":
            return _to_text(example.tags.get(self.name))
        if self.section == "origin":
            return _to_text(example.origin.get(self.name))
        return _to_text(example.fields.get(self.name))


def parse_selector(text: str) -> FieldSelector:
    """Read a selector: ``category``, ``group``, ``tags/NAME``, ``origin/NAME``, ``answer/FIELD``.

    Raises:
        ConfigInvalid: ``selector-invalid``.
    """
    section, slash, name = text.partition("/")
    if not slash and section and section not in _SECTIONS:
        return FieldSelector(section="", name=section)
    if name and section in _SECTIONS:
        return FieldSelector(section=section, name=name)
    raise ConfigInvalid("selector-invalid", f"{shown(text)!r} names no field; it must be {EXPECTED}.")


def _to_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, str | int | float) and value != "" else None
