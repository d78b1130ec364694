"""Keeping sensitive content out of reports: whatever a recipe screens for never stands in what is shown."""

from collections.abc import Mapping, Sequence
from typing import Any

from training.engine.data.cleaning.sensitive.screening import mask_example, mask_text
from training.engine.data.cleaning.sensitive.settings import ScreenSettings
from training.engine.data.cleaning.sensitive.step import SCREEN_SENSITIVE
from training.engine.data.examples import Example
from training.engine.data.recipe import StepRequest


class ReportMask:
    """Puts placeholders for sensitive content into what reports show, by the settings of the screening step.

    A recipe without that step masks nothing: its owner said that there is nothing to hide.
    """

    def __init__(self, steps: Sequence[StepRequest]) -> None:
        """Take the steps of a recipe."""
        parameters: Mapping[str, Any] | None = next(
            (step.parameters for step in steps if step.kind.name == SCREEN_SENSITIVE.name), None
        )
        self._settings = None if parameters is None else ScreenSettings(**parameters)

    def example(self, example: Example) -> Example:
        """Return an example as reports may show it."""
        return example if self._settings is None else mask_example(example, self._settings)

    def value(self, value: Any) -> Any:
        """Return a JSON value as reports may show it, keys of objects included: a histogram counts values by
        their text. Counts of keys that look the same afterwards are added.
        """
        return value if self._settings is None else _mask(value, self._settings)


def _mask(value: Any, settings: ScreenSettings) -> Any:
    if isinstance(value, str):
        return mask_text(value, settings)
    if isinstance(value, list | tuple):
        return [_mask(item, settings) for item in value]
    if not isinstance(value, Mapping):
        return value
    masked: dict[str, Any] = {}
    for key, item in value.items():
        name, shown = mask_text(str(key), settings), _mask(item, settings)
        present = masked.get(name)
        masked[name] = present + shown if isinstance(present, int) and isinstance(shown, int) else shown
    return masked
