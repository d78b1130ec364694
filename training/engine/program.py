"""The program: `python -m training.engine.program`, alone or several times under torchrun.

`torchrun --nproc-per-node 2 -m training.engine.program …` trains with two processes; the first one speaks.
"""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from registry.artifacts.findings import shown
from training.engine.config_files import read_training_config
from training.engine.data.program.app import EXIT_ERROR, answers_errors
from training.engine.data.program.display import Display
from training.engine.parallel.distributed import join_group
from training.engine.parallel.place import find_torchrun_place
from training.engine.process_group import ProcessGroup, SingleProcess
from training.engine.trainer import run_training

_CLICK_USAGE_ERROR: Final = 2

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


class ErrorStreamReporter:
    """Writes progress, log lines and metrics to standard error, a line each."""

    def progress(self, fraction: float, message: str) -> None:
        """Write the share in per cent, and what is done."""
        self._write(f"{100 * fraction:5.1f} %  {message}")

    def log(self, level: str, message: str) -> None:
        """Write a log line."""
        self._write(f"{level}: {message}")

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        """Write the values of a step."""
        listed = ", ".join(f"{name} {value:.5g}" for name, value in values.items())
        self._write(f"step {step}: {listed}")

    def record(self, name: str, values: Mapping[str, Any]) -> None:
        """Say that there is a document; it is kept with runs on the server only."""
        self._write(f"document {name}: {len(values)} entries")

    def _write(self, line: str) -> None:
        sys.stderr.write(f"{shown(line)}\n")
        sys.stderr.flush()


@app.command()
@answers_errors
def train(
    base: Annotated[Path, typer.Option(exists=True, file_okay=False, help="Base model's folder.")],
    data: Annotated[Path, typer.Option(exists=True, help="Ready training file or folder.")],
    config: Annotated[Path, typer.Option(exists=True, dir_okay=False, help="JSON, TOML or YAML.")],
    output: Annotated[Path, typer.Option(help="Folder to create: an adapter, or a whole model.")],
    holdout: Annotated[Path | None, typer.Option(exists=True, help="Ready held-out file or folder.")] = None,
    checkpoints: Annotated[
        Path | None, typer.Option(help="Folder for checkpoints; a training found there is gone on from.")
    ] = None,
    base_name: Annotated[str | None, typer.Option(help="Name of the base in the adapter.")] = None,
) -> None:
    """Train on files alone; progress on standard error, the result as JSON on standard output."""
    settings = read_training_config(config)
    with _join_started_processes() as group:
        result = run_training(
            base_model=base,
            training_data=data,
            holdout=holdout,
            config=settings,
            output=output,
            report=ErrorStreamReporter(),
            base_model_name=base_name,
            checkpoints=checkpoints,
            group=group,
        )
        if group.rank == 0:
            Display(as_json=True).document(result.to_values())


def main(arguments: list[str] | None = None) -> None:
    """Run the program."""
    try:
        app(args=arguments, prog_name="python -m training.engine.program")
    except SystemExit as end:
        # click ends a usage error with 2, which in Assay means "inconclusive".
        raise SystemExit(EXIT_ERROR if end.code == _CLICK_USAGE_ERROR else end.code) from None


@contextmanager
def _join_started_processes() -> Iterator[ProcessGroup]:
    """Join the processes that torchrun started; without it there is this one alone."""
    place = find_torchrun_place()
    if place is None:
        yield SingleProcess()
        return
    with join_group(place) as group:
        yield group


if __name__ == "__main__":
    main()
