"""kind "merge": the adapter merged into its base model, as the output `merged_model`."""

from training.engine.merge.merger import run_merge
from workers.job.comparison import with_timing
from workers.job.events import EventWriter
from workers.job.execution import RunnerResult
from workers.job.spec import JobTask

OUTPUT = "merged_model"


def run(task: JobTask, report: EventWriter) -> RunnerResult:
    """Merges the input `adapter` into `base_model`."""
    result = run_merge(
        base_model=task.input("base_model"),
        adapter=task.input("adapter"),
        output=task.outputs / OUTPUT,
        report=report,
    )
    return RunnerResult(values=with_timing(result.to_values(), "duration_seconds"), outputs=(OUTPUT,))
