"""The program: `python -m training.engine.lint CONFIG`, which `assay train lint` becomes."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from registry.artifacts.findings import shown
from training.engine.config import TrainingConfig
from training.engine.config_files import read_training_config
from training.engine.data.examples import Example
from training.engine.data.program.app import (
    EXIT_ERROR,
    EXIT_FINDINGS,
    PROGRAM_NAME_VARIABLE,
    answers_errors,
)
from training.engine.data.program.display import Display
from training.engine.errors import ConfigInvalid
from training.engine.lint.base_facts import BaseFacts, read_base_facts
from training.engine.lint.data_facts import MeasuredData, count_examples, read_training_examples
from training.engine.lint.findings import LintReport
from training.engine.lint.judge import judge_plan
from training.engine.lint.plan import TrainingPlan

_CLICK_USAGE_ERROR: Final = 2
_SHOWN_UNUSABLE: Final = 3

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
@answers_errors
def lint(
    config: Annotated[
        Path,
        typer.Argument(metavar="CONFIG", exists=True, dir_okay=False, help="JSON, TOML or YAML."),
    ],
    data: Annotated[
        list[Path], typer.Option("--data", exists=True, help="Ready training file or folder; repeat.")
    ] = [],  # noqa: B006 (typer copies it)
    general: Annotated[
        list[Path], typer.Option("--general", exists=True, help="Ready general data, likewise.")
    ] = [],  # noqa: B006
    holdout: Annotated[
        Path | None,
        typer.Option(exists=True, help="Ready held-out file; with --data, leaving it out counts."),
    ] = None,
    base: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Base model's folder: shape, lengths.")
    ] = None,
    card_gb: Annotated[
        float | None, typer.Option("--card-gb", min=0.1, help="Memory of the card in GB, such as 24.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Judge a training configuration before the run.

    Says what is the matter, why, and what to change. Rules whose facts are not given are named as not
    checked. Ends with 1 when there is an error: the run would fail, or its result could not be used.
    """
    display = Display(as_json=as_json)
    settings = read_training_config(config)
    base_facts = None if base is None else read_base_facts(base)
    measured = _measure(settings, data, general, base)
    plan = TrainingPlan(
        config=settings,
        shape=base_facts.shape if base_facts else None,
        base_dtype=base_facts.dtype if base_facts else None,
        data=measured.facts if measured else None,
        card_bytes=None if card_gb is None else card_gb * 1e9,
        has_held_out=holdout is not None if measured or holdout else None,
    )
    report = judge_plan(plan)
    if as_json:
        display.document({**report.to_json(), "plan": _plan_to_json(plan, measured)})
    else:
        _show(display, plan, report, measured, base_facts)
    if report.has_errors:
        raise typer.Exit(EXIT_FINDINGS)


def main(arguments: list[str] | None = None) -> None:
    """Run the program; its name in help texts is that of the command that people type."""
    name = os.environ.get(PROGRAM_NAME_VARIABLE, "python -m training.engine.lint")
    try:
        app(args=arguments, prog_name=name)
    except SystemExit as end:
        # click ends a usage error with 2, which in Assay means "inconclusive".
        raise SystemExit(EXIT_ERROR if end.code == _CLICK_USAGE_ERROR else end.code) from None


def _measure(
    config: TrainingConfig, data: list[Path], general: list[Path], base: Path | None
) -> MeasuredData | None:
    if not data and not general:
        return None
    examples = read_training_examples(data, general)
    return count_examples(examples) if base is None else _measure_rendered(examples, config, base)


def _measure_rendered(examples: Sequence[Example], config: TrainingConfig, base: Path) -> MeasuredData:
    try:
        # Here, since they load torch and jinja2: the rest of the program needs the base install alone.
        from training.engine.lint.row_lengths import measure_rows
        from training.engine.lora_model import load_tokenizer
    except ImportError as error:
        message = (
            f"Measuring rows with the base's chat template needs the package {error.name}: "
            "pip install 'assay-gate[worker]', or leave --base out."
        )
        raise ConfigInvalid("library-missing", message) from error
    return measure_rows(examples, config, tokenizer=load_tokenizer(base))


def _plan_to_json(plan: TrainingPlan, measured: MeasuredData | None) -> dict[str, Any]:
    lengths = plan.data.lengths if plan.data else None
    return {
        "config": plan.config.to_json(),
        "num_rows": plan.num_rows,
        "num_unusable": len(measured.unusable) if measured else None,
        "general_fraction": plan.data.general_fraction if plan.data else None,
        "common_tokens": lengths.common_tokens if lengths else None,
        "longest_tokens": lengths.longest_tokens if lengths else None,
        "num_steps": plan.num_steps,
        "num_passes": plan.num_passes,
        "effective_batch": plan.effective_batch,
    }


def _show(
    display: Display,
    plan: TrainingPlan,
    report: LintReport,
    measured: MeasuredData | None,
    base_facts: BaseFacts | None,
) -> None:
    display.line(_summary(plan))
    display.findings(
        [
            {**finding.to_json(), "message": f"{finding.message} [{finding.source}]", "example_ids": []}
            for finding in report.findings
        ]
    )
    for note in _notes(report, measured, base_facts):
        display.line(note, "dim")


def _summary(plan: TrainingPlan) -> str:
    parts = [plan.config.method, f"effective batch {plan.effective_batch}"]
    if plan.num_rows is not None:
        parts.append(f"{plan.num_rows} rows")
    if plan.num_steps is not None:
        parts.append(f"{plan.num_steps} steps")
    if plan.num_passes is not None:
        parts.append(f"{plan.num_passes:.3g} passes")
    return ", ".join(parts)


def _notes(report: LintReport, measured: MeasuredData | None, base_facts: BaseFacts | None) -> list[str]:
    notes = []
    if measured and measured.unusable:
        listed = "; ".join(
            f"{shown(item.example_id)}: {shown(item.reason)}" for item in measured.unusable[:_SHOWN_UNUSABLE]
        )
        notes.append(f"{len(measured.unusable)} examples cannot be trained on at all ({listed})")
    if base_facts and base_facts.note:
        notes.append(base_facts.note)
    if report.unchecked:
        missing = sorted({fact.value for rule in report.unchecked for fact in rule.missing})
        codes = ", ".join(rule.code for rule in report.unchecked)
        notes.append(f"Not checked, for want of {', '.join(missing)}: {codes}")
    return notes
