"""What the programs have in common that let models of this machine work on data files, without a server.

They end with 0 when done; with 1 when done, but a person should look (each program says when); with 3 when
refused, and with 130 when stopped. Results appear under their name whole or not at all.
"""

import functools
import importlib.util
import json
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

import typer

from evaluation.engine.backends.base import BackendConfig, BackendError
from evaluation.engine.errors import EngineError, EvaluationError
from registry.artifacts.errors import ArtifactError
from registry.artifacts.findings import shown
from training.engine.data.program.app import EXIT_ERROR, PROGRAM_NAME_VARIABLE, answers_errors
from training.engine.data.program.display import Display, ProgressDisplay, shown_whole
from training.engine.errors import ConfigInvalid, Fault, TrainingEngineError
from training.engine.progress import ProgressReporter
from training.engine.settings_rules import unknown_key
from workers.job.environment import prepare_environment
from workers.job.errors import StepRefused
from workers.job.text_generators.generator import BackendGenerator
from workers.job.text_generators.local_model import LocalModel
from workers.job.text_generators.process_backend import ProcessBackend

REPORT_FILE: Final = "report.json"
SCHEMA_VERSION: Final = 1
EXIT_INTERRUPTED: Final = 130
"""128 + SIGINT, as shells report it."""

_CLICK_USAGE_ERROR: Final = 2
_MAX_LOG_LINES: Final = 15

P = ParamSpec("P")
T = TypeVar("T")


def run_program(app: typer.Typer, command: str, arguments: Sequence[str] | None = None) -> None:
    """Runs a program of one command and leaves it by ``SystemExit``.

    Args:
        app: The program.
        command: Its name behind ``assay dataset`` and behind ``workers.job``.
        arguments: None takes those of the process.
    """
    prepare_environment(num_threads=None)
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    group = os.environ.get(PROGRAM_NAME_VARIABLE)
    name = f"{group} {command}" if group else f"python -m workers.job.{command}"
    try:
        app(args=arguments, prog_name=name)
    except SystemExit as end:
        # click ends a usage error with 2, which in Assay means "inconclusive".
        raise SystemExit(EXIT_ERROR if end.code == _CLICK_USAGE_ERROR else end.code) from None


def answers_model_errors(command: Callable[P, None]) -> Callable[P, None]:
    """Makes a command print refusals of data, models and engines with all of their faults and end with 3."""

    @answers_errors
    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except EngineError as error:
            for line in error.log_tail.splitlines()[-_MAX_LOG_LINES:]:
                Display().err.print(shown_whole(line), style="dim")
            raise TrainingEngineError(error.code, error.message) from error
        except EvaluationError as error:
            faults = [Fault(code=f.code, message=f.message, where=f.where) for f in error.faults]
            raise TrainingEngineError(error.code, error.message, faults=faults) from error
        except (ArtifactError, BackendError, StepRefused) as error:
            raise TrainingEngineError(error.code, str(error)) from error
        except KeyboardInterrupt as stop:
            Display().err.print("Stopped; nothing was written.", style="yellow")
            raise typer.Exit(EXIT_INTERRUPTED) from stop

    return guarded


def read_part(faults: list[Fault], read: Callable[[], T]) -> T | None:
    """Reads one section of settings; its faults go to the list, and None comes back."""
    try:
        return read()
    except ConfigInvalid as error:
        faults.extend(error.faults or [Fault(code=error.code, message=error.message)])
    return None


def merge_section(raw: Mapping[str, Any], name: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings in which a section has further values; a section that is no object is left for its
    reader to refuse.
    """
    section = raw.get(name)
    if section is not None and not isinstance(section, Mapping):
        return dict(raw)
    return {**raw, name: {**(section or {}), **values}}


def refuse_unknown_sections(raw: Mapping[str, Any], known: Sequence[str], faults: list[Fault]) -> None:
    """Adds a fault for every key of a settings file that is no section."""
    faults += [unknown_key(shown(key), shown(key), list(known)) for key in raw if key not in known]


def read_backend(raw: Mapping[str, Any], name: str | None, *, max_tokens: int | None) -> BackendConfig:
    """Reads the section ``backend`` of a settings file (see ``BackendConfig``).

    Args:
        raw: The whole file.
        name: Of the engine, from the command line; None leaves it to the file, and without a word there to
            what is installed: vLLM where there is one, else transformers.
        max_tokens: Longest answer that will be asked for; None when it is not known.

    Raises:
        ConfigInvalid: ``backend-invalid``.
    """
    section = raw.get("backend", {})
    try:
        if not isinstance(section, Mapping):
            raise TypeError("must be an object")
        default = "vllm" if importlib.util.find_spec("vllm") else "transformers"
        given = {"name": default, **section, **({} if name is None else {"name": name})}
        config = BackendConfig.from_json(given)
        if max_tokens is not None and max_tokens >= config.max_model_len:
            raise ValueError(
                f"max_model_len {config.max_model_len} leaves no room for prompts beside {max_tokens} tokens "
                "of an answer"
            )
    except (TypeError, ValueError) as error:
        fault = Fault(code="backend-invalid", message=shown(error), where="backend")
        raise ConfigInvalid(
            "backend-invalid", f"The backend cannot be used: {shown(error)}", faults=[fault]
        ) from error
    return config


class EngineProgress:
    """Shows in one bar how far the whole is, and in words how far the engine is.

    Args:
        display: The bar.
    """

    def __init__(self, display: ProgressDisplay) -> None:
        self._display = display
        self._fraction = 0.0

    def progress(self, fraction: float, message: str) -> None:
        """Takes the finished fraction of the whole."""
        self._fraction = fraction
        self._display.progress(fraction, message)

    def log(self, level: str, message: str) -> None:
        """Takes one log line."""
        self._display.log(level, message)

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        """Takes measured values; there are none."""

    def of_engine(self, label: str) -> Callable[[float, str], None]:
        """Returns what takes the progress of one engine."""
        return lambda fraction, message: self._display.progress(
            self._fraction, f"{label}: {message} ({fraction:.0%})"
        )


def make_generator(
    model: LocalModel, config: BackendConfig, scratch: Path, on_progress: Callable[[float, str], None]
) -> BackendGenerator:
    """Returns the generator of a model whose engine runs in processes of its own.

    Args:
        model: The model.
        config: The engine.
        scratch: Folder of this model alone, made here.
        on_progress: Takes the progress of each call.
    """
    scratch.mkdir()
    backend = ProcessBackend(model.folder, config, scratch=scratch)
    return BackendGenerator(model, backend, config, on_progress)


def warn_of_unasked(engines: Sequence[Mapping[str, Any]], report: ProgressReporter, *, remedy: str) -> None:
    """Says which prompts of ``BackendGenerator.facts`` were not asked, and the remedy of too long ones."""
    for facts in engines:
        name = facts["identity"]["model"]
        if num := facts["not_asked"].get("prompt-too-long"):
            report.log("warning", f"{name}: {num} of {facts['num_prompts']} prompts were too long; {remedy}")
        if num := facts["not_asked"].get("template-refused"):
            reason = facts["template_refusal"]
            report.log("warning", f"{name}: {num} of {facts['num_prompts']} prompts were refused: {reason}")


def write_json_file(path: Path, document: Mapping[str, Any]) -> None:
    """Writes one JSON document into a folder that is not seen yet."""
    path.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
