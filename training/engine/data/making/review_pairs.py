"""What people look at after a distillation: best and worst answer of few inputs, never all (MISSION C5).

Most of them are the inputs whose candidates agree least; a control part is drawn at random from all others,
so that people also learn how good the examples are that nobody would have looked at.
"""

import hashlib
import heapq
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from training.engine.data.making.distillation import DistilledInput
from training.engine.data.making.ranking import RankedCandidate

_Entry = TypeVar("_Entry", bound=tuple[float, int, DistilledInput])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewAnswer:
    """One of the answers that are shown.

    Attributes:
        text: The answer.
        teacher: Who gave it; a screen should show that after the vote only.
        candidate: Its number.
        agreement: With the other candidates, 0-1; None when it is the only acceptable one.
    """

    text: str
    teacher: str
    candidate: int
    agreement: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewPair:
    """One item of a review.

    Attributes:
        example_id: Of the example whose answer is ``top``.
        input_text: What the user says.
        top: The highest-ranked answer.
        bottom: The lowest-ranked acceptable answer that differs from it; None when there is none.
        part: ``lowest`` (lowest agreement) or ``control`` (drawn at random).
        is_top_first: Whether a screen shows ``top`` in the first place; seeded, so that place tells nothing.
    """

    example_id: str
    input_text: str
    top: ReviewAnswer
    bottom: ReviewAnswer | None
    part: str
    is_top_first: bool

    def to_json(self) -> dict[str, Any]:
        """Return the form that is stored."""
        return asdict(self)


class ReviewSelection:
    """Chooses review pairs from a stream; holds at most ``2 * num_lowest + num_control`` inputs.

    Args:
        num_lowest: Examples of lowest agreement; inputs with one acceptable candidate come before all others.
        num_control: Further ones at random.
        seed: Of the random part and of the places on the screen.
    """

    def __init__(self, *, num_lowest: int, num_control: int, seed: int) -> None:
        self._num_lowest = num_lowest
        self._num_control = num_control
        self._seed = seed
        self._num_seen = 0
        # heapq keeps the smallest on top, so the keys are negative: what must leave first is on top.
        self._lowest: list[tuple[float, int, DistilledInput]] = []
        self._drawn: list[tuple[float, int, DistilledInput]] = []

    def add(self, item: DistilledInput) -> None:
        """Look at one input; those without an example are passed over."""
        if item.example is None:
            return
        self._num_seen += 1
        agreement = item.ranked[0].agreement
        key = -1.0 if agreement is None else agreement
        _keep(self._lowest, (-key, -self._num_seen, item), self._num_lowest)
        # Enough to fill the control part though all of the lowest may be among the drawn.
        draw = self._draw("control", item.example.example_id)
        _keep(self._drawn, (-draw, -self._num_seen, item), self._num_lowest + self._num_control)

    def pairs(self) -> tuple[ReviewPair, ...]:
        """Return the lowest, the least agreement first, then the control part in the order of the inputs."""
        lowest = sorted(self._lowest, reverse=True)
        places = {place for _, place, _ in lowest}
        drawn = [item for item in sorted(self._drawn, reverse=True) if item[1] not in places]
        control = sorted(drawn[: self._num_control], key=lambda item: -item[1])
        return (
            *(self._make_pair(item, "lowest") for _, _, item in lowest),
            *(self._make_pair(item, "control") for _, _, item in control),
        )

    def _make_pair(self, item: DistilledInput, part: str) -> ReviewPair:
        top = item.ranked[0]
        others = [ranked for ranked in item.ranked[1:] if ranked.candidate.text != top.candidate.text]
        return ReviewPair(
            example_id=item.source.example_id,
            input_text=item.source.input_text,
            top=_show(top),
            bottom=_show(others[-1]) if others else None,
            part=part,
            is_top_first=self._draw("place", item.source.example_id) % 2 == 0,
        )

    def _draw(self, purpose: str, example_id: str) -> int:
        text = f"{self._seed}:{purpose}:{example_id}"
        return int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:8], "big")


def pairs_for_people(
    items: Iterable[DistilledInput], *, num_lowest: int, num_control: int, seed: int
) -> tuple[ReviewPair, ...]:
    """Choose the pairs that people look at; see ``ReviewSelection``."""
    selection = ReviewSelection(num_lowest=num_lowest, num_control=num_control, seed=seed)
    for item in items:
        selection.add(item)
    return selection.pairs()


def _keep(heap: list[_Entry], entry: _Entry, size: int) -> None:
    heapq.heappush(heap, entry)
    if len(heap) > size:
        heapq.heappop(heap)


def _show(ranked: RankedCandidate) -> ReviewAnswer:
    return ReviewAnswer(
        text=ranked.candidate.text,
        teacher=ranked.candidate.teacher,
        candidate=ranked.candidate.number,
        agreement=ranked.agreement,
    )
