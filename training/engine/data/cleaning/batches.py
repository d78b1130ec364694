"""What a pass of cleaning does with a batch of examples, in this process or in another one."""

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from training.engine.data.cleaning.report import StepTally
from training.engine.data.cleaning.step import LocalStep, Step
from training.engine.data.example_files import format_line, parse_line
from training.engine.data.examples import Example

MAX_EXAMPLES: Final = 1000
MAX_BYTES: Final = 4_000_000
"""Of one batch; an example that is larger is a batch of its own."""

ExampleMask = Callable[[Example], Example]
Counts = Mapping[Hashable, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Some lines of a file that ``write_examples`` made.

    Attributes:
        path: The file.
        start: Byte where the first line begins.
        size_bytes: Length of all lines.
    """

    path: Path
    start: int
    size_bytes: int

    def iterate_examples(self) -> Iterator[Example]:
        """Read the examples."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            lines = file.read(self.size_bytes)
        return iterate_lines(lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class TreatedBatch:
    """What became of a batch.

    Attributes:
        num_kept: Examples that go on.
        lines: Their lines.
        dropped: For each step the lines of what it dropped, see ``run_step``.
        tallies: For each step the outcomes.
    """

    num_kept: int
    lines: bytes
    dropped: tuple[str, ...]
    tallies: tuple[StepTally, ...]


def cut_into_batches(path: Path) -> Iterator[Batch]:
    """Yield all lines of a file in batches."""
    start = size_bytes = num_examples = 0
    with path.open("rb") as file:
        for line in file:
            if num_examples == MAX_EXAMPLES or (num_examples and size_bytes + len(line) > MAX_BYTES):
                yield Batch(path=path, start=start, size_bytes=size_bytes)
                start, size_bytes, num_examples = start + size_bytes, 0, 0
            size_bytes += len(line)
            num_examples += 1
    if num_examples:
        yield Batch(path=path, start=start, size_bytes=size_bytes)


def iterate_lines(lines: bytes) -> Iterator[Example]:
    """Read the examples of some lines."""
    # A line feed inside of a text is escaped; the last one ends the last line.
    return map(parse_line, lines.split(b"\n")[:-1])


class Treatment:
    """The steps of one pass, applied one after the other, and a step of the next pass that observes.

    Args:
        steps: By name, in their order.
        observer: Sees what goes on; None when nothing in this process wants to.
        mask: Makes an example fit to be shown.
    """

    def __init__(
        self, steps: Sequence[tuple[str, Step]], *, observer: Step | None, mask: ExampleMask
    ) -> None:
        self._steps, self._observer, self._mask = tuple(steps), observer, mask
        all_steps = [*(step for _, step in steps), *([] if observer is None else [observer])]
        self._counting_steps = [step for step in all_steps if isinstance(step, LocalStep)]

    def treat(self, batch: Batch) -> TreatedBatch:
        """Apply the steps to a batch."""
        tallies = tuple(StepTally(self._mask) for _ in self._steps)
        dropped: tuple[list[str], ...] = tuple([] for _ in self._steps)
        kept: list[bytes] = []
        for example in batch.iterate_examples():
            treated = self._apply_all(example, tallies, dropped)
            if treated is not None:
                kept.append(format_line(treated))
                if self._observer is not None:
                    self._observer.observe(treated)
        return TreatedBatch(
            num_kept=len(kept), lines=b"".join(kept), dropped=tuple(map("".join, dropped)), tallies=tallies
        )

    def treat_apart(self, batch: Batch) -> tuple[TreatedBatch, list[Counts]]:
        """Apply copies of local steps to a batch; with what came of it goes what was counted meanwhile."""
        before = [Counter(step.counts) for step in self._counting_steps]
        treated = self.treat(batch)
        pairs = zip(self._counting_steps, before, strict=True)
        return treated, [_subtract(step.counts, earlier) for step, earlier in pairs]

    def add_counts(self, counts: Sequence[Counts]) -> None:
        """Take what copies counted."""
        for step, more in zip(self._counting_steps, counts, strict=True):
            step.counts.update(more)

    def _apply_all(
        self, example: Example, tallies: Sequence[StepTally], dropped: Sequence[list[str]]
    ) -> Example | None:
        for (name, step), tally, own_dropped in zip(self._steps, tallies, dropped, strict=True):
            outcome = step.apply(example)
            tally.add(example, outcome)
            if outcome.example is None:
                line = {
                    "step": name,
                    "reasons": outcome.reasons,
                    "detail": outcome.detail,
                    "example": self._mask(example).to_json(),
                }
                own_dropped.append(json.dumps(line, ensure_ascii=False) + "\n")
                return None
            example = outcome.example
        return example


def _subtract(counts: Counts, before: Counts) -> Counts:
    changes = ((key, number - before.get(key, 0)) for key, number in counts.items())
    return {key: change for key, change in changes if change}
