"""Counts with the ids of the first few examples counted, in bounded memory."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from training.engine.data.checks.check import MAX_LISTED_IDS

Key = TypeVar("Key", bound=Hashable)


@dataclass(slots=True)
class IdTally:
    """How many examples, and which came first.

    Attributes:
        count: All of them.
        ids: The first five.
    """

    count: int = 0
    ids: list[str] = field(default_factory=list)
    _last_id: str | None = None

    def add(self, example_id: str) -> None:
        """Count one example; a second time in a row is the same one."""
        if example_id == self._last_id:
            return
        self._last_id = example_id
        self.count += 1
        if len(self.ids) < MAX_LISTED_IDS:
            self.ids.append(example_id)


class KeyedTally(Generic[Key]):
    """A tally for each of a bounded number of keys.

    Attributes:
        num_other: Examples with a key that had no place any more.
    """

    def __init__(self, max_keys: int) -> None:
        """Start empty, with room for ``max_keys`` different keys."""
        self._tallies: dict[Key, IdTally] = {}
        self._max_keys = max_keys
        self.num_other = 0

    def add(self, key: Key, example_id: str) -> None:
        """Count one example under a key."""
        tally = self._tallies.get(key)
        if tally is None:
            if len(self._tallies) >= self._max_keys:
                self.num_other += 1
                return
            tally = self._tallies[key] = IdTally()
        tally.add(example_id)

    @property
    def total(self) -> int:
        """All examples counted, those without a place as well."""
        return self.num_other + sum(tally.count for tally in self._tallies.values())

    @property
    def num_keys(self) -> int:
        """Different keys with a place."""
        return len(self._tallies)

    def get(self, key: Key) -> IdTally:
        """Return the tally of a key; an empty one for a key that was not counted."""
        return self._tallies.get(key) or IdTally()

    def most_common(self) -> list[tuple[Key, IdTally]]:
        """Return all keys, the most frequent first; of equally frequent ones the first seen."""
        return sorted(self._tallies.items(), key=lambda item: -item[1].count)


def merge_ids(tallies: Iterable[IdTally]) -> tuple[str, ...]:
    """Return the first few ids of several tallies, each once."""
    return tuple(dict.fromkeys(example_id for tally in tallies for example_id in tally.ids))[:MAX_LISTED_IDS]
