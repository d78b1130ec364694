"""kind "train": a LoRA adapter trained on the base model, as the output `adapter`."""

from training.engine.config import TrainingConfig
from training.engine.trainer import run_training
from workers.job.comparison import with_timing
from workers.job.events import EventWriter
from workers.job.execution import RunnerResult
from workers.job.spec import JobTask

OUTPUT = "adapter"


def run(task: JobTask, report: EventWriter) -> RunnerResult:
    """Trains on the input `training_data`; `holdout`, where there is such an input, gives the held-out
    loss.
    """
    result = run_training(
        base_model=task.input("base_model"),
        training_data=task.input("training_data"),
        holdout=task.optional_input("holdout"),
        config=TrainingConfig.from_json(task.spec.config),
        output=task.outputs / OUTPUT,
        report=report,
    )
    values = with_timing(result.to_values(), "duration_seconds", "tokens_per_second")
    return RunnerResult(values=values, outputs=(OUTPUT,))
