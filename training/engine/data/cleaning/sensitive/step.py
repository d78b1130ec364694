"""The cleaning step ``screen_sensitive`` (MISSION C3(5), the part done by rules)."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from training.engine.data.cleaning.sensitive.screening import mask_example, mask_text, screen_example
from training.engine.data.cleaning.sensitive.settings import DEFAULTS, RULES, ScreenSettings
from training.engine.data.cleaning.step import Outcome, StepContext, StepKind
from training.engine.data.examples import Example


class ScreenSensitive:
    """The step at work.

    Reports must not repeat what it finds: ``mask_example`` and ``mask_text`` give what may be shown.
    """

    def __init__(self, settings: ScreenSettings) -> None:
        """Start with nothing counted."""
        self._settings = settings
        self._num_findings: Counter[str] = Counter()
        self._num_examples: Counter[str] = Counter()
        self._num_reserved = 0
        self._num_in_fields = 0

    def observe(self, example: Example) -> None:
        """Need no first pass."""

    def apply(self, example: Example) -> Outcome:
        """Redact, drop or flag."""
        screening = screen_example(example, self._settings)
        kinds = [item.span.kind for item in screening.found]
        self._num_findings.update(kinds)
        self._num_examples.update(set(kinds))
        self._num_reserved += screening.num_reserved
        self._num_in_fields += len(screening.in_fields)
        return screening.outcome

    def facts(self) -> Mapping[str, Any]:
        """Return findings and examples by kind, and how many documented examples were left alone."""
        return {
            "num_findings": dict(sorted(self._num_findings.items())),
            "num_examples": dict(sorted(self._num_examples.items())),
            "num_reserved_ignored": self._num_reserved,
            "num_in_fields": self._num_in_fields,
        }

    def mask_example(self, example: Example) -> Example:
        """Return the example as reports may show it: a placeholder for all that is found."""
        return mask_example(example, self._settings)

    def mask_text(self, text: str) -> str:
        """Return a text as reports may show it."""
        return mask_text(text, self._settings)


def _build(parameters: Mapping[str, Any], context: StepContext) -> ScreenSensitive:
    return ScreenSensitive(ScreenSettings(**parameters))


SCREEN_SENSITIVE = StepKind(
    name="screen_sensitive",
    version=1,
    summary="Replaces, drops or flags personal data and secrets that rules recognise.",
    source="MISSION C3(5)",
    rules=RULES,
    defaults=DEFAULTS,
    build=_build,
)
