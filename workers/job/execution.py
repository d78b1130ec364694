"""Running one job: from its specification to result.json."""

import importlib
import logging
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, cast

from workers.job.comparison import digest_outputs
from workers.job.events import EVENTS_NAME, EventWriter
from workers.job.failures import describe_failure
from workers.job.result import RESULT_NAME, JobFailure, JobResult, write_result
from workers.job.spec import JobSpec, JobTask

OUTPUTS_NAME = "outputs"
SCRATCH_NAME = "scratch"
KEPT_NAME = "kept"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerResult:
    """What a runner gives back.

    Attributes:
        values: The summary that the database keeps; JSON.
        outputs: Names of the folders below the task's `outputs` that it filled.
    """

    values: Mapping[str, Any]
    outputs: tuple[str, ...] = field(default=())


class Runner(Protocol):
    """A module of `workers.job.runners`."""

    def run(self, task: JobTask, report: EventWriter) -> RunnerResult:
        """Does the work of one kind."""
        ...


def run_job(*, spec: JobSpec, workdir: Path, target: Path, kept: Path | None = None) -> JobResult:
    """Runs a job and writes events.jsonl, outputs/, scratch/ and result.json into `target`.

    Args:
        spec: What is to be done.
        workdir: The folder against which the inputs are named.
        target: Where to write; leftovers of an earlier run there are removed.
        kept: The folder that outlives attempts, see `JobTask.kept`; None gives an empty one in `target`.

    Returns:
        The result; a failure is a result, too.
    """
    for name in (RESULT_NAME, EVENTS_NAME):
        (target / name).unlink(missing_ok=True)
    own_kept = [target / KEPT_NAME] if kept is None else []
    for folder in (target / OUTPUTS_NAME, target / SCRATCH_NAME, *own_kept):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
    task = JobTask(
        spec=spec,
        workdir=workdir,
        outputs=target / OUTPUTS_NAME,
        scratch=target / SCRATCH_NAME,
        kept=kept or target / KEPT_NAME,
    )
    with EventWriter(target / EVENTS_NAME) as report:
        result = _run_guarded(task, report)
    try:
        write_result(target, result)
    except ValueError:
        logger.exception("The values of the job are no JSON.")
        message = "The program gave values that are no JSON; the log of the attempt holds the details."
        result = JobResult(
            failure=JobFailure(failure_class="internal", code="values-not-json", message=message)
        )
        write_result(target, result)
    return result


def load_runner(kind: str) -> Runner:
    """Loads the module of one kind; the others, and their libraries, stay out of the process."""
    return cast(Runner, importlib.import_module(f"workers.job.runners.{kind}"))


def _run_guarded(task: JobTask, report: EventWriter) -> JobResult:
    try:
        done = load_runner(task.spec.kind).run(task, report)
        digests = {name: digest_outputs(task.outputs / name) for name in done.outputs}
    except Exception as error:  # The life of the job ends here: whatever happened becomes its result.
        logger.exception("The job failed.")
        return JobResult(failure=describe_failure(error))
    return JobResult(
        outputs={name: f"{OUTPUTS_NAME}/{name}" for name in done.outputs},
        values=done.values,
        output_digests=digests,
    )
