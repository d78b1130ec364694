"""The program: `python -m training.engine.forensics`, for a training whose checkpoints are at hand."""

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from registry.artifacts.findings import shown
from training.engine.config_files import read_training_config
from training.engine.data.program.app import (
    EXIT_ERROR,
    EXIT_FINDINGS,
    PROGRAM_NAME_VARIABLE,
    answers_errors,
)
from training.engine.data.program.display import Display
from training.engine.errors import NotFinite
from training.engine.forensics.evidence import (
    NotFiniteReport,
    finite_or_none,
    shown_text,
    worst_examples,
)
from training.engine.forensics.from_files import read_inputs
from training.engine.forensics.investigation import investigate
from training.engine.forensics.replay import ReplayLimits

_CLICK_USAGE_ERROR: Final = 2
_SHOWN_EXAMPLES: Final = 8
_SHOWN_MODULES: Final = 8
_SHOWN_CHARS: Final = 150

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
@answers_errors
def find(
    base: Annotated[Path, typer.Option(exists=True, file_okay=False, help="Base model's folder.")],
    data: Annotated[Path, typer.Option(exists=True, help="Training file or folder of the run.")],
    config: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="JSON, TOML or YAML.")],
    checkpoints: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Checkpoint folder of the run.")
    ] = None,
    holdout: Annotated[Path | None, typer.Option(exists=True, help="Held-out file of the run.")] = None,
    step: Annotated[
        int | None, typer.Option(min=1, help="Step at which the run failed; without it, one is looked for.")
    ] = None,
    max_steps: Annotated[int, typer.Option(min=1, help="Steps done again at most.")] = 400,
    max_minutes: Annotated[float, typer.Option(min=0.1, help="Time for them at most.")] = 15.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the record as JSON.")] = False,
) -> None:
    """Find the first step of a training with a number that is not finite, and why.

    The checkpoints are bisected to the last sound one, the steps after it are done again, and the first bad
    one is taken apart. Ends with 1 when there is one.
    """
    display = Display(as_json=as_json)
    inputs = read_inputs(
        base_model=base,
        training_data=data,
        holdout=holdout,
        config=read_training_config(config),
        checkpoints=checkpoints,
    )
    if inputs.checkpoints is not None and not inputs.checkpoints.list_steps():
        display.err.print(
            "There is no checkpoint of this base, data, configuration and set of libraries; the steps are "
            "done again from the start.",
            style="yellow",
        )
    report = investigate(
        inputs,
        error=None if step is None else NotFinite(what="loss", step=step, example_ids=()),
        limits=ReplayLimits(max_steps=max_steps, max_seconds=60 * max_minutes),
    )
    if as_json:
        display.document(report.to_json())
    else:
        show_report(display, report)
    if report.evidence.first_bad_step is not None:
        raise typer.Exit(EXIT_FINDINGS)


def main(arguments: list[str] | None = None) -> None:
    """Run the program; its name in help texts is that of the command that people type."""
    name = os.environ.get(PROGRAM_NAME_VARIABLE, "python -m training.engine.forensics")
    try:
        app(args=arguments, prog_name=name)
    except SystemExit as end:
        # click ends a usage error with 2, which in Assay means "inconclusive".
        raise SystemExit(EXIT_ERROR if end.code == _CLICK_USAGE_ERROR else end.code) from None


def show_report(display: Display, report: NotFiniteReport) -> None:
    """Print what was found: cause and treatment first, then what they rest on."""
    evidence, judgement = report.evidence, report.judgement
    display.line(f"{judgement.cause}: {judgement.message}", "bold red")
    display.line(f"  -> {judgement.treatment}")
    display.line(f"Steps done again from step {report.checkpoint_step} (0 is the start).", "dim")
    if evidence.losses:
        norms = dict(evidence.gradient_norms)
        display.line()
        display.table(
            ("step before it", "loss", "gradient norm"),
            [(step, loss, _number(norms.get(step))) for step, loss in evidence.losses[-_SHOWN_EXAMPLES:]],
        )
    if evidence.examples:
        display.line()
        display.table(
            ("example alone", "loss", "gradient norm", "tokens", "text"),
            [
                (
                    shown(example.example_id),
                    _number(finite_or_none(example.loss)),
                    _number(finite_or_none(example.gradient_norm)),
                    example.num_tokens,
                    shown_text(example.text, _SHOWN_CHARS),
                )
                for example in worst_examples(evidence.examples)[:_SHOWN_EXAMPLES]
            ],
        )
    if report.first_bad_module is not None:
        display.line()
        display.line(f"First module that is not finite: {shown(report.first_bad_module)}")
    if report.modules:
        display.table(
            ("module", "gradient norm"),
            [
                (shown(module.name), _number(finite_or_none(module.gradient_norm)))
                for module in report.modules[:_SHOWN_MODULES]
            ],
        )


def _number(value: float | None) -> str:
    return "not finite" if value is None else f"{value:.3g}"
