"""kind "prepare": raw files become sets for training and judging, as the output `prepared`."""

from pathlib import Path

from training.engine.data.preparation.inputs import PreparationInputs
from training.engine.data.preparation.run import run_preparation
from training.engine.data.recipe import Recipe
from workers.job.events import EventWriter
from workers.job.execution import RunnerResult
from workers.job.spec import JobTask

OUTPUT = "prepared"


def run(task: JobTask, report: EventWriter) -> RunnerResult:
    """Runs the recipe in the config over the input `sources`; `general` and `unchanged` are mixed in,
    `evaluation_sets` are searched for leaks, `tokenizer` measures lengths, where there are such inputs.
    """
    inputs = PreparationInputs(
        sources=task.input("sources"),
        general=task.optional_input("general"),
        unchanged=task.optional_input("unchanged"),
        evaluation_sets=_sets_in(task.optional_input("evaluation_sets")),
        tokenizer=task.optional_input("tokenizer"),
    )
    result = run_preparation(
        inputs,
        Recipe.from_json(task.spec.config),
        output=task.outputs / OUTPUT,
        scratch=task.scratch,
        report=report,
        num_processes=task.spec.num_threads or 1,
    )
    return RunnerResult(values=result.to_values(), outputs=(OUTPUT,))


def _sets_in(folder: Path | None) -> dict[str, Path]:
    if folder is None:
        return {}
    return {path.stem: path for path in sorted(folder.glob("*.jsonl"))}
