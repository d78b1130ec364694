"""Running one cleaning step from file to file."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any

from training.engine.data.cleaning.report import StepReport, StepTally
from training.engine.data.cleaning.step import StepContext, StepKind
from training.engine.data.example_files import WrittenFile, iterate_examples, write_examples
from training.engine.data.examples import Example
from training.engine.errors import ConfigInvalid, Fault
from training.engine.settings_rules import read_section

ExampleMask = Callable[[Example], Example]


def _show_as_it_is(example: Example) -> Example:
    return example


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
    step = kind.build(parameters, context)
    if kind.needs_first_pass:
        for example in iterate_examples(source):
            step.observe(example)
    tally = StepTally(mask)

    def treated() -> Iterator[Example]:
        for example in iterate_examples(source):
            outcome = step.apply(example)
            tally.add(example, outcome)
            if outcome.example is not None:
                yield outcome.example
                continue
            line = {
                "step": kind.name,
                "reasons": outcome.reasons,
                "detail": outcome.detail,
                "example": mask(example).to_json(),
            }
            dropped.write(json.dumps(line, ensure_ascii=False) + "\n")

    written = write_examples(target, treated())
    report = tally.report(name=kind.name, version=kind.version, parameters=parameters, facts=step.facts())
    return report, written
