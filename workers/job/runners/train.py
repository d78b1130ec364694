"""kind "train": a LoRA adapter trained on the base model, as the output `adapter`."""

from training.engine.config import TrainingConfig
from training.engine.fingerprint import take_fingerprint
from training.engine.trainer import run_training
from workers.job.comparison import with_timing
from workers.job.events import EventWriter
from workers.job.execution import RunnerResult
from workers.job.spec import JobTask

OUTPUT = "adapter"
_DIFFERENT_EACH_TIME = ("duration_seconds", "tokens_per_second", "peak_memory_bytes", "resumed_from_step")


def run(task: JobTask, report: EventWriter) -> RunnerResult:
    """Trains on the input `training_data`; `holdout`, where there is such an input, gives the held-out
    loss.
    """
    raw = dict(task.spec.config)
    # Serving compares the name in adapter_config.json with the name of the base that it serves.
    base_model_name = raw.pop("base_model_name", None)
    # What the run is for is no setting of the training.
    raw.pop("purpose", None)
    config = TrainingConfig.from_json(raw)
    base_model, training_data = task.input("base_model"), task.input("training_data")
    holdout = task.optional_input("holdout")
    report.progress(0.0, "hashing the inputs")
    fingerprint = take_fingerprint(
        base_model=base_model,
        training_data=training_data,
        holdout=holdout,
        config=config,
        code_version=task.spec.code_version,
    )
    result = run_training(
        base_model=base_model,
        training_data=training_data,
        holdout=holdout,
        config=config,
        base_model_name=base_model_name,
        output=task.outputs / OUTPUT,
        report=report,
    )
    values = with_timing(result.to_values(), *_DIFFERENT_EACH_TIME)
    values["fingerprint"] = fingerprint.to_json()
    return RunnerResult(values=values, outputs=(OUTPUT,))
