"""A training as it is run for people: watched by the monitor, and explained when it stops."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from training.engine.errors import NotFinite
from training.engine.forensics.from_files import explain_training
from training.engine.forensics.step_history import StepHistory
from training.engine.monitor.history import RunFacts
from training.engine.monitor.journal import StepJournal
from training.engine.monitor.monitor import Monitor
from training.engine.out_of_memory import is_out_of_memory
from training.engine.parallel.launcher import run_in_processes
from training.engine.parallel.task import TrainingTask
from training.engine.progress import RunReporter
from training.engine.step_record import StepObserver
from training.engine.training_result import TrainingResult

JOURNAL_FILE: Final = "steps.jsonl"


def run_watched_training(
    task: TrainingTask,
    *,
    report: RunReporter,
    scratch: Path,
    num_processes: int = 1,
    threads_per_process: int | None = None,
    observers: Sequence[StepObserver] = (),
) -> TrainingResult:
    """Train on one or several processes; findings are recorded as "finding", and a loss that is not finite is
    traced to its first bad step, recorded as "not_finite".

    Args:
        task: What is to be done. Beside its checkpoints stands a journal of the steps, so that findings
            survive a break.
        report: Receives everything.
        scratch: Existing folder for small files.
        num_processes: At least 1.
        threads_per_process: For arithmetic; None leaves the choice to the libraries.
        observers: Are told of every step besides the monitor.

    Raises:
        TrainingFailed: ``loss-not-finite`` with the first bad step and the likely cause,
            ``preflight-failed``, and what `training.engine.trainer.run_training` raises.
        MemoryError: Memory ran out; so do RuntimeErrors that say so.
    """
    history = StepHistory()
    monitor = Monitor(
        report,
        facts=RunFacts(
            is_adapter=task.config.method != "full",
            lora_scaling=None if task.config.method == "full" else task.config.lora.scaling,
            has_held_out=task.holdout is not None,
        ),
        journal=None if task.checkpoints is None else StepJournal(task.checkpoints / JOURNAL_FILE),
    )
    try:
        return run_in_processes(
            task,
            num_processes=num_processes,
            report=report,
            scratch=scratch,
            observers=(monitor, history, *observers),
            threads_per_process=threads_per_process,
        )
    except NotFinite as error:
        monitor.on_not_finite(step=error.step, what=error.what)
        raise explain_training(
            error,
            base_model=task.base_model,
            training_data=task.training_data,
            holdout=task.holdout,
            config=task.config,
            checkpoints=task.checkpoints,
            report=report,
            history=history.records,
        ) from None
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            monitor.on_out_of_memory()
        raise
