"""`python -m workers.job.screen INPUTS --model FOLDER --out DIR`: a model of this machine looks for what
rules cannot recognise, such as names and addresses (MISSION C3(5)).

The rules of ``screen_sensitive`` run as well, and both decide together. It ends with 1 when the model left
parts of the set unanswered: those were looked at by the rules alone. Everything is written all the same.
"""

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from registry.artifacts.digests import digest_json, hash_stream
from training.engine.data.cleaning.report import StepTally
from training.engine.data.cleaning.sensitive.model_pass import ModelOutcome, ModelPass
from training.engine.data.example_files import WrittenFile, write_examples
from training.engine.data.examples import Example
from training.engine.data.jsonl import read_examples
from training.engine.data.program.app import EXIT_FINDINGS
from training.engine.data.program.display import Display, ProgressDisplay
from training.engine.data.program.files import output_folder, read_recipe_file
from training.engine.errors import DataInvalid
from workers.job.model_programs import (
    REPORT_FILE,
    SCHEMA_VERSION,
    EngineProgress,
    answers_model_errors,
    make_generator,
    run_program,
    warn_of_unasked,
    write_json_file,
)
from workers.job.screen_settings import ModelScreenSettings
from workers.job.text_generators.generator import BackendGenerator, ReplyGenerator
from workers.job.text_generators.local_model import open_model

CODE_VERSION: Final = "screen@1"
EXAMPLES_FILE: Final = "screened.jsonl"
DROPPED_FILE: Final = "dropped.jsonl"
MARKED_FILE: Final = "marked.jsonl"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
@answers_model_errors
def screen_command(
    inputs: Annotated[
        Path, typer.Argument(metavar="INPUTS", exists=True, dir_okay=False, help="A ready set (JSONL).")
    ],
    model: Annotated[
        Path, typer.Option("--model", exists=True, file_okay=False, help="Folder of the model that is asked.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the result; must not exist or be empty.")],
    settings: Annotated[
        Path | None,
        typer.Option(exists=True, dir_okay=False, help="YAML, TOML or JSON: screen, model_pass, backend."),
    ] = None,
    backend: Annotated[str | None, typer.Option(help="vllm or transformers.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print report.json instead of tables.")] = False,
) -> None:
    """Look for sensitive content by rules and a model: redact, drop or flag it."""
    request = ModelScreenSettings.from_json(read_recipe_file(settings), backend=backend)
    display = Display(as_json=as_json)
    with (
        output_folder(out) as output,
        tempfile.TemporaryDirectory(prefix="assay-screen-") as scratch,
        ProgressDisplay(display) as bar,
    ):
        report = screen_file(
            inputs, model, request, output=output, scratch=Path(scratch), progress=EngineProgress(bar)
        )
    if as_json:
        display.document(report)
    else:
        _show(display, report, out)
    if report["step"]["facts"]["num_unanswered"]:
        raise typer.Exit(EXIT_FINDINGS)


def screen_file(
    inputs: Path,
    model: Path,
    settings: ModelScreenSettings,
    *,
    output: Path,
    scratch: Path,
    progress: EngineProgress,
) -> dict[str, Any]:
    """Screens a ready set and fills a folder.

    ``screened.jsonl`` holds the examples that go on, ``dropped.jsonl`` the others, ``marked.jsonl`` those
    that go on with a reason: redacted, flagged, not answered by the model. In the last two, which show ids
    and messages, and in the report, everything that was found stands as a placeholder.

    Args:
        inputs: Ready set.
        model: Folder of the model.
        settings: What decides the rest.
        output: Empty folder; the report is written last.
        scratch: Empty folder for what the engine is asked.
        progress: Takes progress.

    Returns:
        The content of report.json.

    Raises:
        DataInvalid: the set cannot be read or is empty.
        StepRefused, PromptError: the model's folder cannot be used.
        EngineError, BackendError: the engine failed.
    """
    progress.progress(0.0, "reading the set")
    examples = read_examples(inputs, needs_answer=False)
    if not examples:
        raise DataInvalid("no-inputs", f"{inputs.name} holds no example.")
    opened = open_model(model)
    generator = make_generator(opened, settings.backend, scratch / "model", progress.of_engine(opened.name))
    model_pass = ModelPass(ReplyGenerator(generator), settings.screen, settings.model_pass)
    writing = _Writing(output)
    written = writing.write(model_pass.run(examples), examples, progress)
    step = writing.tally.report(
        name="screen_by_model",
        version=1,
        parameters={name: value for name, value in settings.to_json().items() if name != "backend"},
        facts=model_pass.facts(),
    )
    report = _make_report(settings, inputs, generator, written, step.to_json())
    remedy = "raise backend.max_model_len, or lower model_pass.max_characters"
    warn_of_unasked([report["engine"]], progress, remedy=remedy)
    write_json_file(output / REPORT_FILE, report)
    return report


class _Writing:
    """Writes outcomes into their files and counts them."""

    def __init__(self, output: Path) -> None:
        self._output = output
        self._masked: Example | None = None
        # What a report shows of an example is the same before and after: without all that was found.
        self.tally = StepTally(lambda example: self._masked or example)

    def write(
        self, outcomes: Iterator[ModelOutcome], before: Sequence[Example], progress: EngineProgress
    ) -> WrittenFile:
        with (
            (self._output / DROPPED_FILE).open("w", encoding="utf-8") as dropped,
            (self._output / MARKED_FILE).open("w", encoding="utf-8") as marked,
        ):

            def kept() -> Iterator[Example]:
                for example, item in zip(before, outcomes, strict=True):
                    self._masked = item.masked
                    num_done = self.tally.num_in + 1
                    progress.progress(num_done / len(before), f"{num_done} of {len(before)} examples")
                    self.tally.add(example, item.outcome)
                    if item.outcome.reasons:
                        file = dropped if item.outcome.example is None else marked
                        file.write(json.dumps(_describe(item), ensure_ascii=False) + "\n")
                    if item.outcome.example is not None:
                        yield item.outcome.example

            return write_examples(self._output / EXAMPLES_FILE, kept())


def _describe(item: ModelOutcome) -> dict[str, Any]:
    # The model is not asked about the other keys of a line, so a name in them would not be masked here.
    shown = replace(item.masked, fields={})
    return {
        "reasons": list(item.outcome.reasons),
        "detail": item.outcome.detail,
        "example": shown.to_json(),
    }


def _make_report(
    settings: ModelScreenSettings,
    inputs: Path,
    generator: BackendGenerator,
    written: WrittenFile,
    step: Mapping[str, Any],
) -> dict[str, Any]:
    decided = settings.to_json()
    with inputs.open("rb") as file:
        read = hash_stream(file)
    return {
        "schema_version": SCHEMA_VERSION,
        "code_version": CODE_VERSION,
        "settings": decided,
        "settings_digest": digest_json(decided),
        "inputs": {"name": inputs.name, "size_bytes": read.size_bytes, "sha256": read.sha256},
        "engine": generator.facts(),
        "step": step,
        "examples": {
            "name": EXAMPLES_FILE,
            "num_examples": written.num_examples,
            "size_bytes": written.size_bytes,
            "sha256": written.sha256,
        },
    }


def _show(display: Display, report: Mapping[str, Any], out: Path) -> None:
    step, facts = report["step"], report["step"]["facts"]
    display.line(
        f"{step['num_in']} examples: {step['num_changed']} changed, {step['num_flagged']} flagged, "
        f"{step['num_dropped']} dropped",
        "bold",
    )
    display.table(("reason", "examples"), list(step["reasons"].items()))
    found = ", ".join(f"{kind} {num}" for kind, num in facts["num_found"].items()) or "nothing"
    display.line(f"The model was asked {facts['num_asked']} times and quoted: {found}")
    if facts["num_unanswered"]:
        message = f"{facts['num_unanswered']} parts got no usable reply; only the rules looked at them"
        display.line(f"{message} (model-unanswered in {MARKED_FILE}).", "yellow")
    display.line(f"Written to {out}: {EXAMPLES_FILE}, {MARKED_FILE}, {DROPPED_FILE}, {REPORT_FILE}")


def main(arguments: list[str] | None = None) -> None:
    """Runs the program."""
    run_program(app, "screen", arguments)


if __name__ == "__main__":
    main()
