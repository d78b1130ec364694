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
    config = dict(task.spec.config)
    # Serving compares the name in adapter_config.json with the name of the base that it serves.
    base_model_name = config.pop("base_model_name", None)
    result = run_training(
        base_model=task.input("base_model"),
        training_data=task.input("training_data"),
        holdout=task.optional_input("holdout"),
        config=TrainingConfig.from_json(config),
        base_model_name=base_model_name,
        output=task.outputs / OUTPUT,
        report=report,
    )
    values = with_timing(result.to_values(), "duration_seconds", "tokens_per_second")
    return RunnerResult(values=values, outputs=(OUTPUT,))
