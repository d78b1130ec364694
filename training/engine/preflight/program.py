"""The program: `python -m training.engine.preflight`, which `assay train preflight` becomes."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from training.engine.config import TrainingConfig
from training.engine.config_files import read_training_config
from training.engine.data.program.app import (
    EXIT_ERROR,
    EXIT_FINDINGS,
    PROGRAM_NAME_VARIABLE,
    answers_errors,
)
from training.engine.data.program.display import Display, ProgressDisplay
from training.engine.errors import TrainingFailed
from training.engine.lora_model import load_tokenizer
from training.engine.preflight.stages import FAILURE_CODE
from training.engine.preflight.standalone import run_preflight
from training.engine.preflight.terminal import show_document

_CLICK_USAGE_ERROR: Final = 2

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class RecordingDisplay(ProgressDisplay):
    """Shows progress and keeps what is recorded.

    Attributes:
        documents: The last document of each name.
    """

    def __init__(self, display: Display) -> None:
        super().__init__(display)
        self.documents: dict[str, Mapping[str, Any]] = {}

    def record(self, name: str, values: Mapping[str, Any]) -> None:
        """Keep a document."""
        self.documents[name] = values


@app.command()
@answers_errors
def preflight(
    base: Annotated[Path, typer.Option(exists=True, file_okay=False, help="Base model's folder.")],
    data: Annotated[Path, typer.Option(exists=True, help="Training file or folder.")],
    holdout: Annotated[
        Path | None, typer.Option(exists=True, help="Held-out file or folder: looked through for leaks.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="Training configuration: JSON, TOML or YAML."),
    ] = None,
    data_only: Annotated[
        bool, typer.Option("--data-only", help="Stop after the data; the base's weights are not read.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the report as JSON.")] = False,
) -> None:
    """Try out a training before its first step.

    Shows the first batches as the model gets them, with what is trained in green; checks the data, learns a
    few examples by heart, and examines the first step. Ends with 1 when a check failed.
    """
    display = Display(as_json=as_json)
    settings = TrainingConfig() if config is None else read_training_config(config)
    progress = RecordingDisplay(display)
    with progress:
        try:
            run_preflight(
                base_model=base,
                training_data=data,
                holdout=holdout,
                config=settings,
                report=progress,
                is_data_only=data_only,
            )
        except TrainingFailed as error:
            if error.code != FAILURE_CODE:
                raise
    document = progress.documents["preflight"]
    if as_json:
        display.document(document)
    else:
        show_document(display, document, special_tokens=_list_special_tokens(base))
    if not document["passed"]:
        raise typer.Exit(EXIT_FINDINGS)


def main(arguments: list[str] | None = None) -> None:
    """Run the program; its name in help texts is that of the command that people type."""
    name = os.environ.get(PROGRAM_NAME_VARIABLE, "python -m training.engine.preflight")
    try:
        app(args=arguments, prog_name=name)
    except SystemExit as end:
        # click ends a usage error with 2, which in Assay means "inconclusive".
        raise SystemExit(EXIT_ERROR if end.code == _CLICK_USAGE_ERROR else end.code) from None


def _list_special_tokens(base: Path) -> list[str]:
    tokenizer = load_tokenizer(base)
    return [str(tokenizer.decode([token])) for token in tokenizer.all_special_ids]
