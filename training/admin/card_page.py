"""What one set holds, made ready for a page: facts, histograms and how often each value occurs."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from training.admin.histograms import DrawnHistogram, draw_histograms

MAX_SHOWN_VALUES: Final = 12
MAX_SHOWN_FIELDS: Final = 24

_COUNTED: Final[Mapping[str, str]] = {
    "sources": "References made by",
    "languages": "Languages",
    "scripts": "Scripts",
    "origins": "Origins",
    "categories": "Categories",
}
_FACTS: Final[Mapping[str, str]] = {
    "num_examples": "Examples",
    "num_verified": "Verified references",
    "num_confirmed": "Confirmed by a person",
    "num_general": "General examples",
    "num_unchanged": "Nothing to change",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One value and how often it occurs, in examples and in percent of all of its kind."""

    value: str
    count: int
    percent: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """How often each value of one thing occurs, the most frequent first; `num_more` values are not shown."""

    title: str
    shares: tuple[Share, ...]
    num_more: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Contents:
    """The card of one set."""

    facts: tuple[tuple[str, int], ...]
    histograms: tuple[DrawnHistogram, ...]
    distributions: tuple[Distribution, ...]

    @property
    def is_empty(self) -> bool:
        """Whether the card says nothing that could be shown, as that of a version that was uploaded ready."""
        return not (self.facts or self.histograms or self.distributions)


def build_contents(card: Mapping[str, Any]) -> Contents:
    """The card of a set, or of a dataset version, for the page; whatever the card lacks is left out."""
    return Contents(
        facts=tuple((label, card[key]) for key, label in _FACTS.items() if isinstance(card.get(key), int)),
        histograms=draw_histograms(card.get("lengths") or {}),
        distributions=tuple(_distributions(card)),
    )


def _distributions(card: Mapping[str, Any]) -> Iterator[Distribution]:
    for key, title in _COUNTED.items():
        if card.get(key):
            yield _distribution(title, card[key])
    for kind, label in (("tags", "Tag"), ("fields", "Field")):
        for name, counts in list((card.get(kind) or {}).items())[:MAX_SHOWN_FIELDS]:
            if counts:
                yield _distribution(f"{label} {name}", counts)


def _distribution(title: str, counts: Mapping[str, int]) -> Distribution:
    total = sum(counts.values()) or 1
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Distribution(
        title=title,
        shares=tuple(
            Share(value=value, count=count, percent=100 * count / total)
            for value, count in ordered[:MAX_SHOWN_VALUES]
        ),
        num_more=max(len(ordered) - MAX_SHOWN_VALUES, 0),
    )
