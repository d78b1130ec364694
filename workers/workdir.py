"""The folder of one attempt: inputs linked from the store, spec.json, and what the child writes."""

import json
import shutil
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from registry.artifacts.paths import is_safe_path
from registry.errors import AssayError
from registry.services.artifacts import materialise_artifact, materialise_file
from registry.services.jobs import ClaimedJob
from workers.job.execution import KEPT_NAME, OUTPUTS_NAME
from workers.job.spec import JobSpec, write_spec

INPUTS_NAME = "inputs"


class InputsMalformed(AssayError):
    """The `inputs` of a job do not have the shape that `registry.models.Job` describes."""

    wordings = {"job-inputs-malformed": "Input {name!r} of the job cannot be laid out: {reason}."}


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFolder:
    """Where one attempt's files are.

    Attributes:
        path: The folder that `python -m workers.job` is given; those of a job's attempts lie side by side.
    """

    path: Path

    @property
    def child_log(self) -> Path:
        """What the child writes to its standard output and error."""
        return self.path / "child.log"

    @property
    def outputs(self) -> Path:
        """Where the child puts its outputs."""
        return self.path / OUTPUTS_NAME

    @property
    def kept(self) -> Path:
        """What outlives the attempts at the job on this machine, such as checkpoints."""
        return self.path.parent / KEPT_NAME


def prepare_work_folder(
    *, claim: ClaimedJob, root: Path, num_threads: int, num_processes: int | None = None
) -> WorkFolder:
    """Makes the folder of an attempt, complete enough to be run again by hand on another machine.

    Args:
        claim: The attempt.
        root: Folder of all work folders.
        num_threads: Threads for the child's arithmetic; recorded, since results may depend on it.
        num_processes: Processes of a training; None is one for each accelerator of the machine.

    Raises:
        InputsMalformed: the job's `inputs` have another shape than documented.
        AssayError: an artifact is unknown, or its bytes are missing.
        OSError: the disk is full or broken.
    """
    folder = root / str(claim.job_id) / f"attempt-{claim.attempt}"
    # Only an attempt with the same number could have made it, and each number is given once.
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for killed in folder.parent.glob("attempt-*"):
        # Outputs that a killed worker left; nobody will take them over.
        shutil.rmtree(killed / OUTPUTS_NAME, ignore_errors=True)
    for name, source in claim.inputs.items():
        _lay_out(name, source, folder / INPUTS_NAME / name)
    spec = JobSpec(
        job_id=str(claim.job_id),
        kind=claim.kind,
        code_version=claim.code_version,
        inputs={name: f"{INPUTS_NAME}/{name}" for name in claim.inputs},
        config=claim.config,
        num_threads=num_threads,
        num_processes=num_processes,
        hints=claim.hints,
    )
    write_spec(folder, spec)
    laid_out = WorkFolder(path=folder)
    laid_out.kept.mkdir(exist_ok=True)
    return laid_out


def remove_kept_folder(*, root: Path, job_id: UUID) -> None:
    """Removes what attempts at a job left for the next one; there will be none.

    Args:
        root: Folder of all work folders.
        job_id: A job in a final state.
    """
    shutil.rmtree(root / str(job_id) / KEPT_NAME, ignore_errors=True)


def remove_old_work_folders(*, root: Path, ttl_seconds: float, keep: frozenset[str]) -> int:
    """Removes the folders of jobs that nothing was written to for a while; returns how many.

    Args:
        root: Folder of all work folders.
        ttl_seconds: Age at which a folder goes.
        keep: Ids of jobs whose folders stay, because they are running.
    """
    if not root.is_dir():
        return 0
    limit = time.time() - ttl_seconds
    num_removed = 0
    for folder in root.iterdir():
        if folder.name not in keep and _latest_change(folder) < limit:
            shutil.rmtree(folder, ignore_errors=True)
            num_removed += 1
    return num_removed


def _lay_out(name: str, source: Any, folder: Path) -> None:
    if not is_safe_path(name) or "/" in name:
        raise InputsMalformed("job-inputs-malformed", name=name, reason="its name is no file name")
    if not isinstance(source, Mapping):
        raise InputsMalformed("job-inputs-malformed", name=name, reason="an object is expected")
    if source.keys() == {"artifact"}:
        folder.parent.mkdir(parents=True, exist_ok=True)
        materialise_artifact(digest=source["artifact"], folder=folder)
        return
    if not source or source.keys() - {"files", "inline"}:
        reason = "it has neither an artifact nor files and inline content alone"
        raise InputsMalformed("job-inputs-malformed", name=name, reason=reason)
    folder.mkdir(parents=True)
    for path, file in source.get("files", {}).items():
        materialise_file(digest=file["artifact"], path=file["path"], target=_inside(name, folder, path))
    for path, value in source.get("inline", {}).items():
        target = _inside(name, folder, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(value, ensure_ascii=False, indent=1), encoding="utf-8")


def _inside(name: str, folder: Path, path: str) -> Path:
    if not is_safe_path(path):
        raise InputsMalformed("job-inputs-malformed", name=name, reason="a path in it is not allowed")
    return folder / path


def _latest_change(folder: Path) -> float:
    """Time of the newest file or folder at the first two levels, where results and logs are."""
    times = [path.lstat().st_mtime for path in (folder, *folder.glob("*"), *folder.glob("*/*"))]
    return max(times)
