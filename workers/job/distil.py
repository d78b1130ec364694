"""`python -m workers.job.distil INPUTS --out DIR`: models of this machine answer inputs, and the best answers
become examples (MISSION C5).

It ends with 1 when rows of the inputs were bad or not one example was made; everything is written all the
same.
"""

import hashlib
import itertools
import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from registry.artifacts.digests import digest_json
from training.engine.data.example_files import WrittenFile, iterate_examples, write_examples
from training.engine.data.intake.intake_log import IntakeLog
from training.engine.data.intake.reading import read_raw
from training.engine.data.intake.settings import IntakeSettings
from training.engine.data.intake.sources import list_sources
from training.engine.data.making.distillation_run import DistillationResult, run_distillation
from training.engine.data.program.app import EXIT_FINDINGS
from training.engine.data.program.display import Display, ProgressDisplay
from training.engine.data.program.files import output_folder, read_columns, read_recipe_file
from training.engine.errors import DataInvalid
from workers.job.distil_settings import DistilSettings, name_of, with_teachers
from workers.job.model_programs import (
    REPORT_FILE,
    SCHEMA_VERSION,
    EngineProgress,
    answers_model_errors,
    make_generator,
    merge_section,
    run_program,
    warn_of_unasked,
    write_json_file,
)
from workers.job.text_generators.generator import BackendGenerator
from workers.job.text_generators.local_model import open_model

CODE_VERSION: Final = "distil@1"
EXAMPLES_FILE: Final = "distilled.jsonl"
UNANSWERED_FILE: Final = "unanswered.jsonl"
PAIRS_FILE: Final = "pairs_for_people.jsonl"
BAD_ROWS_FILE: Final = "bad_rows.jsonl"

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
@answers_model_errors
def distil_command(
    inputs: Annotated[
        Path,
        typer.Argument(
            metavar="INPUTS", exists=True, help="Ready set or raw file or folder; answers in it are replaced."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder for the result; must not exist or be empty.")],
    teacher: Annotated[
        list[str],
        typer.Option("--teacher", metavar="NAME=MODEL_FOLDER", help="A model that answers; repeat."),
    ] = [],  # noqa: B006 (typer copies it)
    settings: Annotated[
        Path | None,
        typer.Option(
            exists=True,
            dir_okay=False,
            help="YAML, TOML or JSON: distillation, teachers and their instructions, judge, backend, intake.",
        ),
    ] = None,
    schema: Annotated[
        Path | None,
        typer.Option(
            exists=True, dir_okay=False, help="JSON Schema of a right answer; answers are JSON then."
        ),
    ] = None,
    judge: Annotated[
        str | None,
        typer.Option(metavar="MODEL_FOLDER", help="A model that compares free-text answers."),
    ] = None,
    backend: Annotated[str | None, typer.Option(help="vllm or transformers.")] = None,
    column: Annotated[
        list[str], typer.Option("--column", metavar="MEANING=COLUMN", help="Such as input=question; repeat.")
    ] = [],  # noqa: B006
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many inputs.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print report.json instead of tables.")] = False,
) -> None:
    """Let models answer inputs, keep the best answer of each as an example, and show people a few."""
    raw = _merge(settings, teacher=teacher, schema=schema, judge=judge, column=column)
    request = DistilSettings.from_json(raw, backend=backend)
    display = Display(as_json=as_json)
    with (
        output_folder(out) as output,
        tempfile.TemporaryDirectory(prefix="assay-distil-") as scratch,
        ProgressDisplay(display) as bar,
    ):
        report = distil_files(
            inputs, request, output=output, scratch=Path(scratch), limit=limit, progress=EngineProgress(bar)
        )
    if as_json:
        display.document(report)
    else:
        _show(display, report, out)
    if report["intake"]["num_bad"] or not report["distillation"]["num_examples"]:
        raise typer.Exit(EXIT_FINDINGS)


def distil_files(
    inputs: Path,
    settings: DistilSettings,
    *,
    output: Path,
    scratch: Path,
    limit: int | None,
    progress: EngineProgress,
) -> dict[str, Any]:
    """Answers inputs and fills a folder: examples, unanswered inputs, bad rows, pairs for people, report.

    Args:
        inputs: Raw file or folder, as the intake reads them; answers in it are replaced.
        settings: What decides the rest.
        output: Empty folder; the report is written last.
        scratch: Empty folder for what engines are asked.
        limit: Only so many inputs from the beginning, and rows behind them are not read; None takes all.
        progress: Takes progress.

    Returns:
        The content of report.json.

    Raises:
        DataInvalid: no input could be read.
        ConfigInvalid: teachers and instructions do not give enough different candidates.
        StepRefused, PromptError: a model's folder cannot be used.
        EngineError, BackendError: an engine failed; what was answered before is lost.
    """
    progress.progress(0.0, "reading inputs")
    read = _read_inputs(inputs, settings.intake, output, scratch, limit)
    generators = _open_generators(settings, scratch, progress)
    teachers = [teacher.bind(generators[_key(teacher.model)]) for teacher in settings.teachers]
    with (output / UNANSWERED_FILE).open("w", encoding="utf-8") as unanswered:
        result = run_distillation(
            iterate_examples(read.written.path),
            teachers=teachers,
            settings=settings.distillation,
            target=output / EXAMPLES_FILE,
            unanswered=unanswered,
            scratch=scratch,
            progress=progress,
            judge=None if settings.judge is None else generators[_key(settings.judge)],
            num_inputs=read.written.num_examples,
        )
    with (output / PAIRS_FILE).open("w", encoding="utf-8") as file:
        for pair in result.pairs:
            file.write(json.dumps(pair.to_json(), ensure_ascii=False) + "\n")
    report = _make_report(settings, read, result, generators)
    remedy = "raise backend.max_model_len, or lower distillation.max_tokens"
    warn_of_unasked(report["engines"], progress, remedy=remedy)
    write_json_file(output / REPORT_FILE, report)
    return report


@dataclass(frozen=True, slots=True, kw_only=True)
class _ReadInputs:
    """The inputs as examples, and what is told of them."""

    written: WrittenFile
    files: list[dict[str, Any]]
    intake: dict[str, Any]
    limit: int | None


def _merge(
    settings: Path | None, *, teacher: list[str], schema: Path | None, judge: str | None, column: list[str]
) -> dict[str, Any]:
    raw = read_recipe_file(settings)
    raw = with_teachers(raw, teacher, relative_to=None if settings is None else settings.parent)
    if schema is not None:
        raw = merge_section(raw, "distillation", {"output_schema": read_recipe_file(schema)})
    if judge is not None:
        raw["judge"] = judge
    columns = read_columns(column)
    if columns and isinstance(raw.get("intake", {}), Mapping):
        raw = {**raw, "intake": merge_section(raw.get("intake", {}), "columns", columns)}
    return raw


def _read_inputs(
    inputs: Path, settings: IntakeSettings, output: Path, scratch: Path, limit: int | None
) -> _ReadInputs:
    # All of it before an engine starts: a file that breaks off must not cost hours of answers.
    log = IntakeLog(max_listed=settings.limits.max_listed_bad_rows)
    examples = itertools.islice(read_raw(inputs, settings, bad_rows=log), limit)
    written = write_examples(scratch / "inputs.jsonl", examples)
    with (output / BAD_ROWS_FILE).open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in log.iterate_bad_row_lines())
    intake = log.report().to_json()
    if not written.num_examples:
        reasons = ", ".join(f"{code} {num}" for code, num in intake["reasons"].items()) or "no rows"
        raise DataInvalid("no-inputs", f"No row of the inputs could be read: {reasons}.")
    sources, _ = list_sources(inputs, settings)
    files = [_describe_file(source.name, source.path) for source in sources]
    return _ReadInputs(written=written, files=files, intake=intake, limit=limit)


def _open_generators(
    settings: DistilSettings, scratch: Path, progress: EngineProgress
) -> dict[str, BackendGenerator]:
    """Returns one generator for each different folder; every engine has been started once."""
    folders = {_key(teacher.model): teacher.model for teacher in settings.teachers}
    if settings.judge is not None:
        folders.setdefault(_key(settings.judge), settings.judge)
    generators: dict[str, BackendGenerator] = {}
    for number, (key, folder) in enumerate(folders.items(), start=1):
        name = name_of(folder)
        progress.progress(0.0, f"opening model {number} of {len(folders)}: {name}")
        model = open_model(Path(folder))
        generator = make_generator(
            model, settings.backend, scratch / f"model-{number}", progress.of_engine(name)
        )
        # A model that does not load is known before the first one has answered for hours.
        progress.progress(0.0, f"starting model {number} of {len(folders)} once: {name}")
        _ = generator.identity
        generators[key] = generator
    return generators


def _key(folder: str) -> str:
    return str(Path(folder).resolve())


def _describe_file(name: str, path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"name": name, "size_bytes": path.stat().st_size, "sha256": digest}


def _make_report(
    settings: DistilSettings,
    read: _ReadInputs,
    result: DistillationResult,
    generators: Mapping[str, BackendGenerator],
) -> dict[str, Any]:
    decided = settings.to_json()
    return {
        "schema_version": SCHEMA_VERSION,
        "code_version": CODE_VERSION,
        "settings": decided,
        "settings_digest": digest_json(decided),
        "inputs": {"files": read.files, "limit": read.limit, "num_inputs": read.written.num_examples},
        "intake": read.intake,
        "distillation": result.report.to_json(),
        "engines": [generator.facts() for generator in generators.values()],
        "examples": {
            "name": EXAMPLES_FILE,
            "num_examples": result.written.num_examples,
            "size_bytes": result.written.size_bytes,
            "sha256": result.written.sha256,
        },
    }


def _show(display: Display, report: Mapping[str, Any], out: Path) -> None:
    done, intake = report["distillation"], report["intake"]
    display.line(
        f"{done['num_inputs']} inputs ({intake['num_bad']} bad rows): {done['num_examples']} examples, "
        f"{done['num_unanswered']} unanswered",
        "bold",
    )
    for reason, num in done["unanswered_reasons"].items():
        display.line(f"  {num} {reason}")
    rows = [
        (
            f"{source['teacher']} {source['variant']}",
            source["num_candidates"],
            source["num_acceptable"],
            source["num_chosen"],
            ", ".join(f"{reason} {num}" for reason, num in source["rejections"].items()),
        )
        for source in done["sources"]
    ]
    display.table(("teacher and instruction", "asked", "acceptable", "chosen", "rejected for"), rows)
    agreement = done["mean_agreement"]
    if agreement is not None:
        display.line(f"Mean agreement between candidates: {agreement}")
    display.line(f"Written to {out}: {EXAMPLES_FILE}, {PAIRS_FILE}, {UNANSWERED_FILE}, {REPORT_FILE}")


def main(arguments: list[str] | None = None) -> None:
    """Runs the program."""
    run_program(app, "distil", arguments)


if __name__ == "__main__":
    main()
