"""The parameters of ``screen_sensitive``, read and checked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import phonenumbers

from training.engine.data.cleaning.sensitive.kinds import DEFAULT_KINDS, LABELS, RULE_LABELS
from training.engine.settings_rules import FLAG, Rule, choice

REDACT, DROP, FLAG_ONLY = "redact", "drop", "flag"
_ACTIONS = (REDACT, DROP, FLAG_ONLY)


def _read_kinds(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value or any(item not in RULE_LABELS for item in value):
        raise ValueError
    return tuple(kind for kind in RULE_LABELS if kind in value)


def _read_actions(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise ValueError
    if any(kind not in LABELS or action not in _ACTIONS for kind, action in value.items()):
        raise ValueError
    return dict(value)


def _read_regions(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise ValueError
    if any(item not in phonenumbers.SUPPORTED_REGIONS for item in value):
        raise ValueError
    return tuple(dict.fromkeys(value))


RULES: Mapping[str, Rule] = {
    "kinds": Rule("a list of kinds out of " + ", ".join(RULE_LABELS), _read_kinds),
    "regions": Rule("a list of ISO 3166 region codes, such as CN", _read_regions),
    "action": choice(*_ACTIONS),
    "actions": Rule("an object from kind to one of " + ", ".join(_ACTIONS), _read_actions),
    "ignore_reserved": FLAG,
    "redact_json_numbers": FLAG,
    "screen_fields": FLAG,
}
DEFAULTS: Mapping[str, Any] = {
    "kinds": DEFAULT_KINDS,
    "regions": ("CN", "US", "GB", "DE"),
    "action": REDACT,
    "actions": {},
    "ignore_reserved": True,
    "redact_json_numbers": False,
    "screen_fields": True,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenSettings:
    """How sensitive content is looked for and what is done about it.

    Attributes:
        kinds: Kinds looked for by rules; all but ``ip`` by default.
        regions: Telephone plans for numbers without a country code.
        action: ``redact`` (a placeholder instead), ``drop`` (the example ends), ``flag`` (left for a person).
        actions: Other actions for single kinds.
        ignore_reserved: Whether documented examples (``user@example.com``, 555-01xx) and public service
            numbers are left alone.
        redact_json_numbers: Whether a number in a JSON text becomes the placeholder, which is a string and so
            changes the value's type; else it is flagged.
        screen_fields: Whether the other keys of the line (tags, group) are searched; what is found there is
            flagged and never changed, since splits and slices hang on them.
    """

    kinds: tuple[str, ...] = DEFAULT_KINDS
    regions: tuple[str, ...] = ("CN", "US", "GB", "DE")
    action: str = REDACT
    actions: Mapping[str, str] = field(default_factory=dict)
    ignore_reserved: bool = True
    redact_json_numbers: bool = False
    screen_fields: bool = True

    def get_action(self, kind: str) -> str:
        """Return the action for a kind."""
        return self.actions.get(kind, self.action)
