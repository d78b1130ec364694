"""kind "train": an adapter trained on the base model, as the output `adapter`; by full fine-tuning a whole
model, as the output `trained_model`. The purposes "preflight" and "mini" give a verdict instead, a document.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from training.engine.config import TrainingConfig
from training.engine.errors import TrainingFailed
from training.engine.fingerprint import take_fingerprint
from training.engine.mini.run import run_mini
from training.engine.parallel.distributed import default_num_processes
from training.engine.parallel.task import TrainingTask
from training.engine.preflight.standalone import run_preflight
from training.engine.watched_training import run_watched_training
from workers.job.comparison import with_timing
from workers.job.events import EventWriter
from workers.job.execution import RunnerResult
from workers.job.files import write_atomic
from workers.job.spec import JobTask

OUTPUT = "adapter"
FULL_OUTPUT = "trained_model"
_DIFFERENT_EACH_TIME = (
    *("duration_seconds", "tokens_per_second", "peak_memory_bytes", "resumed_from_step", "num_processes"),
)
_PREFLIGHT = "preflight"
_PREFLIGHT_FAILED = "preflight-failed"
_KNOWN_FILE = "known_overfits.json"


def run(task: JobTask, report: EventWriter) -> RunnerResult:
    """Trains on the input `training_data`; `holdout`, where there is such an input, gives the held-out
    loss.
    """
    raw = dict(task.spec.config)
    # Serving compares the name in adapter_config.json with the name of the base that it serves.
    base_model_name = raw.pop("base_model_name", None)
    purpose = raw.pop("purpose", "training")
    config = TrainingConfig.from_json(raw)
    keeper = _OverfitKeeper(report, task.kept / _KNOWN_FILE)
    training = TrainingTask(
        base_model=task.input("base_model"),
        training_data=task.input("training_data"),
        holdout=task.optional_input("holdout"),
        config=config,
        output=task.outputs / (FULL_OUTPUT if config.method == "full" else OUTPUT),
        base_model_name=base_model_name,
        checkpoints=task.kept / "checkpoints",
        known_overfits=(*task.spec.hints.get("known_overfits", ()), *keeper.known),
    )
    if purpose == "preflight":
        return _only_preflight(training, keeper)
    if purpose == "mini":
        return RunnerResult(values={"passed": run_mini(training, report=keeper, scratch=task.scratch).passed})
    return _train(task, training, keeper)


def _train(task: JobTask, training: TrainingTask, report: "_OverfitKeeper") -> RunnerResult:
    report.progress(0.0, "hashing the inputs")
    fingerprint = take_fingerprint(
        base_model=training.base_model,
        training_data=training.training_data,
        holdout=training.holdout,
        config=training.config,
        code_version=task.spec.code_version,
    )
    result = run_watched_training(
        training,
        report=report,
        scratch=task.scratch,
        num_processes=task.spec.num_processes or default_num_processes(),
        threads_per_process=task.spec.num_threads,
    )
    values = with_timing(result.to_values(), *_DIFFERENT_EACH_TIME)
    values["fingerprint"] = fingerprint.to_json()
    return RunnerResult(values=values, outputs=(training.output.name,))


def _only_preflight(training: TrainingTask, report: "_OverfitKeeper") -> RunnerResult:
    """The verdict is what was asked for, so that a failed preflight is a job that succeeded."""
    try:
        run_preflight(
            base_model=training.base_model,
            training_data=training.training_data,
            holdout=training.holdout,
            config=training.config,
            report=report,
            known_overfits=training.known_overfits or (),
        )
    except TrainingFailed as error:
        if error.code != _PREFLIGHT_FAILED:
            raise
        return RunnerResult(values={"passed": False})
    return RunnerResult(values={"passed": True})


class _OverfitKeeper:
    """Passes everything on, and keeps which overfit test has passed for the job's next attempt."""

    def __init__(self, report: EventWriter, path: Path) -> None:
        self._report = report
        self._path = path

    @property
    def known(self) -> tuple[str, ...]:
        """Fingerprints that passed in an earlier attempt."""
        return tuple(json.loads(self._path.read_text())) if self._path.is_file() else ()

    def progress(self, fraction: float, message: str) -> None:
        """Passes it on."""
        self._report.progress(fraction, message)

    def log(self, level: str, message: str) -> None:
        """Passes it on."""
        self._report.log(level, message)

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        """Passes it on."""
        self._report.metric(step, values)

    def record(self, name: str, values: Mapping[str, Any]) -> None:
        """Passes it on; of a preflight the fingerprint is kept."""
        self._report.record(name, values)
        overfit = values.get("overfit") if name == _PREFLIGHT else None
        if isinstance(overfit, Mapping) and overfit.get("status") == "passed":
            write_atomic(self._path, json.dumps([*self.known, overfit["fingerprint"]]))
