"""make templates: examples composed by rules and templates (MISSION C5)."""

from pathlib import Path
from typing import Annotated

import typer

from training.engine.data.example_files import write_examples
from training.engine.data.making.template_reading import read_template_file
from training.engine.data.making.template_settings import TemplateSettings
from training.engine.data.making.templates import make_from_templates
from training.engine.data.program.app import answers_errors, app
from training.engine.data.program.display import Display

make_app = typer.Typer(no_args_is_help=True, help="Make examples.")
app.add_typer(make_app, name="make")


@make_app.callback()
def _group() -> None:
    """Make examples."""


@make_app.command("templates")
@answers_errors
def templates_command(
    template_set: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", exists=True, dir_okay=False, help="Template set: slots, labels, sentences (JSON)."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="JSONL file to write.")],
    num: Annotated[int, typer.Option("--num", min=1, help="How many examples.")] = 500,
    seed: Annotated[int, typer.Option(min=0, help="Of every random choice.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Compose examples from declared templates: labels are drawn first, texts state them."""
    display = Display(as_json=as_json)
    settings = TemplateSettings.from_json({"num_examples": num, "seed": seed})
    result = make_from_templates(read_template_file(template_set), settings)
    written = write_examples(out, result.examples)
    if as_json:
        display.document(result.report.to_json())
        return
    display.line(f"{written.num_examples} examples written to {out}, sha256 {written.sha256[:12]}")
