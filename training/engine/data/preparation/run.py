"""Running a recipe over raw files: intake, cleaning, division, checks, leakage, cards, report.

Every stage goes from file to file in the scratch folder, so memory does not grow with the number of examples,
except for what a stage says it holds (near duplicates hold the shingles of all examples).
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from registry.artifacts.dataset_lines import check_dataset_lines
from registry.artifacts.digests import digest_json
from training.engine.data.card.markdown import write_card
from training.engine.data.cleaning.report import StepReport
from training.engine.data.cleaning.run import PlannedStep, plan_passes, run_passes
from training.engine.data.cleaning.step import StepContext
from training.engine.data.example_files import WrittenFile, write_examples
from training.engine.data.intake.reading import IntakeLog, read_raw
from training.engine.data.intake.understanding import understand
from training.engine.data.preparation.digests import digest_inputs
from training.engine.data.preparation.dividing import MixPools, divide
from training.engine.data.preparation.inputs import PreparationInputs
from training.engine.data.preparation.judging import judge_sets, judge_source_order
from training.engine.data.preparation.masking import ReportMask
from training.engine.data.preparation.tokens import LengthTokenizer, load_tokenizer
from training.engine.data.recipe import Recipe
from training.engine.errors import DataInvalid, Fault
from training.engine.progress import ProgressReporter

CODE_VERSION: Final = "prepare@1"
REPORT_FILE: Final = "report.json"
CARD_FILE: Final = "card.md"
UNDERSTANDING_FILE: Final = "understanding.json"
BAD_ROWS_FILE: Final = "bad_rows.jsonl"
DROPPED_FILE: Final = "dropped.jsonl"
SETS_FOLDER: Final = "sets"
SCHEMA_VERSION: Final = 1

MAX_PROCESSES: Final = 4
"""Each takes memory; beyond four the work of the one process that joins their results counts most."""

_INTAKE_END, _CLEAN_END, _DIVIDE_END = 0.2, 0.65, 0.75


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationResult:
    """What came out.

    Attributes:
        sets: The file of each set by its role.
        report: Content of report.json.
    """

    sets: Mapping[str, WrittenFile]
    report: Mapping[str, Any]

    def to_values(self) -> dict[str, Any]:
        """Return the summary that a job's row keeps."""
        intake = self.report["intake"]
        severities = [finding["severity"] for finding in self.report["findings"]]
        return {
            "num_rows": intake["num_rows"],
            "num_bad": intake["num_bad"],
            "num_dropped": sum(step["num_dropped"] for step in self.report["steps"]),
            "sets": {role: written.num_examples for role, written in self.sets.items()},
            "findings": {name: severities.count(name) for name in ("error", "warning", "info")},
            "recipe_digest": self.report["recipe_digest"],
        }


def run_preparation(
    inputs: PreparationInputs,
    recipe: Recipe,
    *,
    output: Path,
    scratch: Path,
    report: ProgressReporter,
    num_processes: int = 1,
) -> PreparationResult:
    """Run a recipe.

    Args:
        inputs: The files.
        recipe: What to do with them.
        output: New or empty folder; report.json is written last, so a folder without it is not complete.
        scratch: Empty folder for stages.
        report: Takes progress and log lines.
        num_processes: How many processes may clean a large file, at most four; each takes up to 400 MB of
            memory. It has no influence on what is written.

    Raises:
        DataInvalid: nothing could be read, nothing was left, or a set would not be a valid dataset.
        ConfigInvalid: the recipe does not fit the data.
    """
    output.mkdir(parents=True, exist_ok=True)
    tokenizer = load_tokenizer(inputs.tokenizer)
    report.progress(0.0, "Reading raw files")
    mask = ReportMask(recipe.clean)
    read, intake = _read(inputs, recipe, output, scratch, mask, report)
    of_source = judge_source_order(read, recipe)
    cleaned, steps = _clean(read, recipe, output, scratch, tokenizer, mask, report, num_processes)
    report.progress(_CLEAN_END, "Dividing into sets")
    sets_folder = output / SETS_FOLDER
    sets_folder.mkdir()
    pools = MixPools(general=inputs.general, unchanged=inputs.unchanged)
    division = divide(cleaned, pools=pools, recipe=recipe, target=sets_folder, scratch=scratch)
    _require_valid(division.sets)
    report.progress(_DIVIDE_END, "Checking the sets")
    judged = judge_sets(
        division.sets,
        others=inputs.evaluation_sets,
        recipe=recipe,
        count_tokens=None if tokenizer is None else tokenizer.count,
        of_source=of_source,
    )
    document = {
        "schema_version": SCHEMA_VERSION,
        "code_version": CODE_VERSION,
        "recipe": recipe.to_json(),
        "recipe_digest": digest_json(recipe.to_json()),
        "inputs": digest_inputs(inputs, recipe),
        "tokenizer": None if tokenizer is None else tokenizer.to_json(),
        "intake": intake,
        "steps": [step.to_json() for step in steps],
        "split": division.split,
        "mix": division.mix,
        "sets": {
            role: _describe(written, mask.value(judged.cards[role]))
            for role, written in division.sets.items()
        },
        "findings": mask.value(judged.findings),
        "leakage": judged.leakage,
    }
    (output / CARD_FILE).write_text(write_card(document), encoding="utf-8")
    _write_json(output / REPORT_FILE, document)
    report.progress(1.0, "Prepared")
    return PreparationResult(sets=division.sets, report=document)


def _read(
    inputs: PreparationInputs,
    recipe: Recipe,
    output: Path,
    scratch: Path,
    mask: ReportMask,
    report: ProgressReporter,
) -> tuple[WrittenFile, dict[str, Any]]:
    understanding = understand(inputs.sources, recipe.intake)
    _write_json(output / UNDERSTANDING_FILE, mask.value(understanding.to_json()))
    log = IntakeLog(max_listed=recipe.intake.limits.max_listed_bad_rows)
    written = write_examples(scratch / "read.jsonl", read_raw(inputs.sources, recipe.intake, bad_rows=log))
    intake = log.report().to_json()
    with (output / BAD_ROWS_FILE).open("w", encoding="utf-8") as file:
        for row in log.bad_rows:
            file.write(json.dumps(mask.value(row.to_json()), ensure_ascii=False) + "\n")
    if not written.num_examples:
        reasons = ", ".join(f"{code} {num}" for code, num in intake["reasons"].items()) or "no rows"
        raise DataInvalid("no-examples", f"No row of the raw files could be read as an example: {reasons}.")
    message = f"{written.num_examples} examples out of {intake['num_rows']} rows, {intake['num_bad']} bad"
    report.progress(_INTAKE_END, message)
    report.log("info", message)
    return written, intake


def _clean(
    read: WrittenFile,
    recipe: Recipe,
    output: Path,
    scratch: Path,
    tokenizer: LengthTokenizer | None,
    mask: ReportMask,
    report: ProgressReporter,
    num_processes: int,
) -> tuple[WrittenFile, list[StepReport]]:
    current = read
    reports: list[StepReport] = []
    passes = plan_passes(_plan_steps(recipe, scratch, tokenizer))
    with (
        (output / DROPPED_FILE).open("w", encoding="utf-8") as dropped,
        closing(
            run_passes(
                passes,
                source=read.path,
                folder=scratch,
                dropped=dropped,
                mask=mask.example,
                num_processes=min(num_processes, MAX_PROCESSES),
            )
        ) as results,
    ):
        for steps in passes:
            _announce(steps, len(reports), len(recipe.clean), report)
            found, current = next(results)
            for step in found:
                report.log("info", _describe_step(step))
            reports += found
    if not current.num_examples:
        worst = max(reports, key=lambda item: item.num_dropped)
        raise DataInvalid(
            "nothing-left",
            f"Cleaning dropped every example; {worst.name} dropped most, {worst.num_dropped}: "
            f"{', '.join(worst.reasons)}.",
        )
    return current, reports


def _plan_steps(recipe: Recipe, scratch: Path, tokenizer: LengthTokenizer | None) -> list[PlannedStep]:
    planned = []
    for number, step in enumerate(recipe.clean, start=1):
        folder = scratch / f"step-{number}"
        folder.mkdir()
        context = StepContext(
            seed=recipe.seed, scratch=folder, count_tokens=None if tokenizer is None else tokenizer.count
        )
        planned.append(PlannedStep(kind=step.kind, parameters=step.parameters, context=context))
    return planned


def _announce(steps: Sequence[PlannedStep], num_done: int, num_steps: int, report: ProgressReporter) -> None:
    fraction = _INTAKE_END + (_CLEAN_END - _INTAKE_END) * num_done / num_steps
    numbers = f"{num_done + 1}" if len(steps) == 1 else f"{num_done + 1}-{num_done + len(steps)}"
    names = ", ".join(step.kind.name for step in steps)
    report.progress(fraction, f"Cleaning {numbers} of {num_steps}: {names}")


def _describe_step(step: StepReport) -> str:
    counts = (("changed", step.num_changed), ("flagged", step.num_flagged), ("dropped", step.num_dropped))
    done = ", ".join(f"{num} {what}" for what, num in counts if num)
    return f"{step.name}: {step.num_in} examples, {done or 'nothing to do'}"


def _require_valid(sets: Mapping[str, WrittenFile]) -> None:
    """The registry checks every line that it takes; what it would refuse must not be called prepared."""
    faults: list[Fault] = []
    for role, written in sets.items():
        with written.path.open("rb") as file:
            summary = check_dataset_lines(file, role=role, file_name=written.path.name)
        faults += [
            Fault(code=item.code, message=item.message, where=item.where or "", remedy=item.remedy or "")
            for item in summary.faults
        ]
    if faults:
        listed = "; ".join(f"{fault.where}: {fault.message}" for fault in faults[:5])
        raise DataInvalid("set-invalid", f"A prepared set is no valid dataset: {listed}", faults=faults)


def _describe(written: WrittenFile, card: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "num_examples": written.num_examples,
        "num_verified": card["num_verified"],
        "sha256": written.sha256,
        "size_bytes": written.size_bytes,
        "card": card,
    }


def _write_json(path: Path, document: Mapping[str, Any]) -> None:
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(path)
