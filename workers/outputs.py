"""Taking over what a job made: its output folder becomes an artifact."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from registry.artifacts.stores.base import PutMode
from registry.choices import ArtifactKind
from registry.errors import AssayError
from registry.services.actors import SYSTEM
from registry.services.artifacts import ingest_folder
from workers.job.result import JobResult
from workers.workdir import WorkFolder

KIND_OF_OUTPUT: Mapping[str, str] = {
    "adapter": ArtifactKind.ADAPTER,
    "trained_model": ArtifactKind.BASE_MODEL,
    "merged_model": ArtifactKind.MERGED_MODEL,
    "report": ArtifactKind.REPORT,
    "prepared": ArtifactKind.PREPARED_DATA,
}


class OutputsMalformed(AssayError):
    """The child's result names outputs that cannot be taken over."""

    wordings = {"job-outputs-malformed": "The outputs of the job cannot be stored: {reason}."}


def store_output(*, result: JobResult, folder: WorkFolder) -> str | None:
    """Stores the output of a succeeded job and returns the artifact's digest; None when the job has no
    output.

    The files are linked into the store where the file system allows, so they take no second place on the
    disk.

    Raises:
        OutputsMalformed: more than one output, an unknown one, or a folder that is not below `outputs`.
        AssayError: the store is full or cannot be written.
    """
    if not result.outputs:
        return None
    if len(result.outputs) > 1:
        raise OutputsMalformed("job-outputs-malformed", reason="a job has one output at most")
    name, relative = next(iter(result.outputs.items()))
    kind = KIND_OF_OUTPUT.get(name)
    source = (folder.path / relative).resolve()
    if kind is None or not source.is_relative_to(folder.outputs.resolve()):
        raise OutputsMalformed("job-outputs-malformed", reason="its name or its place is unknown")
    return ingest_folder(folder=source, kind=kind, actor=SYSTEM, mode=PutMode.LINK).digest


def drop_outputs(folder: WorkFolder) -> None:
    """Removes the outputs after they were stored; result.json keeps their digests for a comparison."""
    shutil.rmtree(folder.outputs, ignore_errors=True)


def tail_of(path: Path, *, max_bytes: int = 4000) -> str:
    """Returns the end of a log file as text; empty when there is none."""
    try:
        with path.open("rb") as file:
            file.seek(0, 2)
            file.seek(max(file.tell() - max_bytes, 0))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
