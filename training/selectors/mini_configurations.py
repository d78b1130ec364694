"""Reads the settings of the minimal reproducible experiment."""

from collections.abc import Mapping
from typing import Any

from training.engine.mini.overlay import read_mini_defaults
from training.models import MiniConfiguration


def get_active_mini_configuration() -> MiniConfiguration | None:
    """The row that holds; None when nobody has changed the defaults."""
    return MiniConfiguration.objects.filter(is_active=True).first()


def get_mini_overlay() -> Mapping[str, Any]:
    """What is laid over a configuration, by section."""
    active = get_active_mini_configuration()
    overlay: Mapping[str, Any] = read_mini_defaults() if active is None else active.overlay
    return overlay
