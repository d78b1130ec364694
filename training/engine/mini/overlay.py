"""Settings of the minimal reproducible experiment laid over a configuration (MISSION D6)."""

from collections.abc import Mapping
from typing import Any, Final

MINI_DEFAULTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "data": {"max_examples": 200},
    "training": {"max_steps": 200, "max_minutes": 10},
}
"""MISSION D6: 200 samples, 200 steps, within ten minutes."""


def read_mini_defaults() -> dict[str, Any]:
    """Return the settings that hold as long as nobody has stored others."""
    return {name: dict(section) for name, section in MINI_DEFAULTS.items()}


def overlay_settings(config: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration in which the overlay's settings take the place of its own.

    Objects are merged key by key, all else is replaced. Neither argument is changed.

    >>> overlay_settings({"training": {"seed": 1, "max_steps": 9}}, {"training": {"max_steps": 2}})
    {'training': {'seed': 1, 'max_steps': 2}}
    """
    merged = dict(config)
    for name, value in overlay.items():
        below = merged.get(name)
        if isinstance(value, Mapping) and isinstance(below, Mapping):
            merged[name] = overlay_settings(below, value)
        else:
            merged[name] = dict(value) if isinstance(value, Mapping) else value
    return merged
