"""The cleaning step ``screen_sensitive`` (MISSION C3(5), the part done by rules)."""

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import Any

from training.engine.data.cleaning.sensitive.kinds import LABELS
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
        self.counts: Counter[Hashable] = Counter()

    def observe(self, example: Example) -> None:
        """Need no first pass."""

    def apply(self, example: Example) -> Outcome:
        """Redact, drop or flag."""
        screening = screen_example(example, self._settings)
        kinds = [item.span.kind for item in screening.found]
        self.counts.update(("findings", kind) for kind in kinds)
        self.counts.update(("examples", kind) for kind in set(kinds))
        self.counts["reserved"] += screening.num_reserved
        self.counts["in fields"] += len(screening.in_fields)
        return screening.outcome

    def facts(self) -> Mapping[str, Any]:
        """Return findings and examples by kind, and how many documented examples were left alone."""
        return {
            "num_findings": self._counts_by_kind("findings"),
            "num_examples": self._counts_by_kind("examples"),
            "num_reserved_ignored": self.counts["reserved"],
            "num_in_fields": self.counts["in fields"],
        }

    def _counts_by_kind(self, what: str) -> dict[str, int]:
        counted = {kind: self.counts[what, kind] for kind in sorted(LABELS)}
        return {kind: number for kind, number in counted.items() if number}

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
    is_local=True,
)
