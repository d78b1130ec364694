"""Running cleaning steps from file to file, several of them in one pass over the examples.

To read and write an example costs as much as a cheap step does. So steps follow each other within a pass, and
a step that must see all examples first sees them while the steps before it write them. Within a pass the
examples go through in batches, which several processes may treat (see ``workers``).
"""

import shutil
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final

from training.engine.data.cleaning.batches import (
    ExampleMask,
    TreatedBatch,
    Treatment,
    cut_into_batches,
    iterate_lines,
)
from training.engine.data.cleaning.report import StepReport, StepTally
from training.engine.data.cleaning.step import Step, StepContext, StepKind
from training.engine.data.cleaning.workers import Workers
from training.engine.data.example_files import WrittenFile, iterate_examples, write_blocks
from training.engine.data.examples import Example
from training.engine.errors import ConfigInvalid, Fault
from training.engine.settings_rules import read_section

MIN_BYTES_FOR_WORKERS: Final = 16_000_000
"""Of a file: with less, starting processes takes longer than they save."""


def _show_as_it_is(example: Example) -> Example:
    return example


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedStep:
    """A step and what it gets.

    Attributes:
        kind: The step.
        parameters: All of its parameters (see ``read_parameters``).
        context: Seed, scratch folder and tokenizer.
    """

    kind: StepKind
    parameters: Mapping[str, Any]
    context: StepContext


def read_parameters(kind: StepKind, raw: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return all parameters of a step, defaults filled in.

    Raises:
        ConfigInvalid: ``step-parameters-invalid`` with every fault.
    """
    faults: list[Fault] = []
    given = read_section(where, raw, kind.rules, faults)
    if faults:
        listed = "; ".join(f"{fault.where}: {fault.message}" for fault in faults)
        raise ConfigInvalid("step-parameters-invalid", f"{kind.name}: {listed}", faults=faults)
    return {**kind.defaults, **given}


def plan_passes(steps: Sequence[PlannedStep]) -> tuple[tuple[PlannedStep, ...], ...]:
    """Return the steps of each pass over the examples: a pass ends before a step that must see all examples
    first.
    """
    passes: list[list[PlannedStep]] = []
    for step in steps:
        if not passes or step.kind.needs_first_pass:
            passes.append([])
        passes[-1].append(step)
    return tuple(tuple(group) for group in passes)


def run_step(
    kind: StepKind,
    parameters: Mapping[str, Any],
    *,
    source: Path,
    target: Path,
    dropped: IO[str],
    context: StepContext,
    mask: ExampleMask = _show_as_it_is,
) -> tuple[StepReport, WrittenFile]:
    """Run a step over a file of examples.

    Args:
        kind: The step.
        parameters: All of its parameters (see ``read_parameters``).
        source: File that ``write_examples`` made.
        target: Written whole or not at all.
        dropped: Takes one line of JSON for each dropped example: step, reasons, detail, and the example.
        context: Seed, scratch folder and tokenizer.
        mask: Makes an example fit to be shown; what goes on to the next step is not masked.
    """
    step = _RunningStep(PlannedStep(kind=kind, parameters=parameters, context=context), mask)
    step.observe_all(source)
    one_pass = _Pass([step], following=None, mask=mask)
    written = one_pass.run(source=source, target=target, dropped=dropped, workers=None)
    return step.report(), written


def run_passes(
    passes: Sequence[Sequence[PlannedStep]],
    *,
    source: Path,
    folder: Path,
    dropped: IO[str],
    mask: ExampleMask = _show_as_it_is,
    num_processes: int = 1,
) -> Generator[tuple[list[StepReport], WrittenFile], None, None]:
    """Run steps one after the other; what comes of them is what ``run_step`` makes of each in turn.

    Args:
        passes: See ``plan_passes``.
        source: File that ``write_examples`` made. Like what the passes write, it goes when it has been read.
        folder: For what the passes write.
        dropped: As for ``run_step``; what one step drops comes before what the next one drops.
        mask: As for ``run_step``; it must pickle when there are several processes.
        num_processes: How many may treat examples at the same time; has no influence on what comes of them.

    Yields:
        After each pass the reports of its steps, and what it wrote.
    """
    following: _RunningStep | None = None
    with ExitStack() as stack:
        workers = stack.enter_context(Workers(num_processes)) if num_processes > 1 else None
        for number, group in enumerate(passes, start=1):
            leading = following or _RunningStep(group[0], mask)
            if following is None:
                leading.observe_all(source)
            running = [leading, *(_RunningStep(step, mask) for step in group[1:])]
            following = _RunningStep(passes[number][0], mask) if number < len(passes) else None
            target = folder / f"pass-{number}.jsonl"
            one_pass = _Pass(running, following=following, mask=mask)
            written = one_pass.run(source=source, target=target, dropped=dropped, workers=workers)
            source.unlink()
            source = target
            if workers is not None and not any(_is_local(later) for later in passes[number:]):
                workers.end()
            yield [step.report() for step in running], written


def _is_local(steps: Sequence["PlannedStep | _RunningStep"]) -> bool:
    return all(step.kind.is_local for step in steps)


class _RunningStep:
    """A step at work and the counts of its outcomes."""

    def __init__(self, planned: PlannedStep, mask: ExampleMask) -> None:
        self._planned = planned
        self.kind = planned.kind
        self.step: Step = planned.kind.build(planned.parameters, planned.context)
        self.tally = StepTally(mask)

    def observe_all(self, source: Path) -> None:
        """Let the step see a file of examples, when it wants to."""
        if self.kind.needs_first_pass:
            for example in iterate_examples(source):
                self.step.observe(example)

    def report(self) -> StepReport:
        return self.tally.report(
            name=self.kind.name,
            version=self.kind.version,
            parameters=self._planned.parameters,
            facts=self.step.facts(),
        )


class _Pass:
    """Steps that are applied to each example in turn; the following one sees what goes on."""

    def __init__(
        self, steps: Sequence[_RunningStep], *, following: _RunningStep | None, mask: ExampleMask
    ) -> None:
        self._steps, self._following, self._mask = steps, following, mask

    def run(self, *, source: Path, target: Path, dropped: IO[str], workers: Workers | None) -> WrittenFile:
        """Write what the steps make of a file."""
        is_large = source.stat().st_size >= MIN_BYTES_FOR_WORKERS
        if workers is not None and is_large and _is_local(self._steps):
            treated = self._treat_with(workers, source)
        else:
            treated = map(self._make_treatment(self._following).treat, cut_into_batches(source))
        with ExitStack() as stack:
            # Steps drop in turn, but what one dropped is wanted before what the next one did.
            lists = [dropped]
            for _ in self._steps[1:]:
                lists.append(stack.enter_context(TemporaryFile("w+", encoding="utf-8", dir=target.parent)))
            written = write_blocks(target, self._take_all(treated, lists))
            for later in lists[1:]:
                later.seek(0)
                shutil.copyfileobj(later, dropped)
        return written

    def _treat_with(self, workers: Workers, source: Path) -> Iterator[TreatedBatch]:
        following = self._following
        observes_there = following is not None and following.kind.observes_locally
        treatment = self._make_treatment(following if observes_there else None)
        for treated in workers.treat_all(treatment, cut_into_batches(source)):
            if following is not None and not observes_there:
                for example in iterate_lines(treated.lines):
                    following.step.observe(example)
            yield treated

    def _make_treatment(self, observer: _RunningStep | None) -> Treatment:
        return Treatment(
            [(step.kind.name, step.step) for step in self._steps],
            observer=None if observer is None else observer.step,
            mask=self._mask,
        )

    def _take_all(
        self, batches: Iterator[TreatedBatch], lists: Sequence[IO[str]]
    ) -> Iterator[tuple[int, bytes]]:
        for treated in batches:
            for step, file, lines, tally in zip(
                self._steps, lists, treated.dropped, treated.tallies, strict=True
            ):
                file.write(lines)
                step.tally.merge(tally)
            yield treated.num_kept, treated.lines
