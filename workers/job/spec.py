"""spec.json: what a job is to do.

The file is written by the worker, but may also be written by hand on another machine, so it is checked like
any input.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from workers.job.errors import Fault, JobFolderError
from workers.job.files import read_json, write_atomic

SCHEMA_VERSION = 1
SPEC_NAME = "spec.json"
KINDS = ("check", "merge", "evaluate", "train", "prepare", "triage")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One job.

    Attributes:
        job_id: Names the job in the database; not used here.
        kind: One of `KINDS`.
        code_version: The code whose result is wanted, such as "merge@1".
        inputs: Name of an input -> its folder, relative to the work folder.
        config: What the runner of the kind understands.
        hints: What may spare the runner work and never changes its result.
        num_threads: Threads for arithmetic; results may depend on it in the last bit. None leaves the
            choice to the libraries.
        num_processes: Processes that train together; results may depend on it in the last bit. None is one
            for each accelerator of the machine, one without any.
    """

    job_id: str
    kind: str
    code_version: str
    inputs: Mapping[str, str]
    config: Mapping[str, Any]
    num_threads: int | None = None
    num_processes: int | None = None
    hints: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Returns the content of spec.json."""
        return {
            "schema_version": SCHEMA_VERSION,
            "job_id": self.job_id,
            "kind": self.kind,
            "code_version": self.code_version,
            "inputs": dict(self.inputs),
            "config": dict(self.config),
            "hints": dict(self.hints),
            "num_threads": self.num_threads,
            "num_processes": self.num_processes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTask:
    """A specification at its place: where the inputs are and where outputs go.

    Attributes:
        spec: What is to be done.
        workdir: The folder with spec.json, against which the inputs are named.
        outputs: The folder for outputs, which exists and is empty; one folder in it for each.
        scratch: The folder for everything else, which exists and is empty.
        kept: The folder for what the next attempt at the job on this machine may go on from, such as
            checkpoints; it exists, and holds what earlier attempts left. Empty for a job that is run by
            hand or repeated.
    """

    spec: JobSpec
    workdir: Path
    outputs: Path
    scratch: Path
    kept: Path

    def input(self, name: str) -> Path:
        """Returns the folder of an input that the kind cannot do without.

        Raises:
            JobFolderError: spec.json does not name it.
        """
        folder = self.optional_input(name)
        if folder is None:
            message = f"A job of kind {self.spec.kind!r} needs the input {name!r}."
            raise JobFolderError(
                "input-missing",
                message,
                faults=[Fault(code="input-missing", message=message, where="inputs")],
            )
        return folder

    def optional_input(self, name: str) -> Path | None:
        """Returns the folder of an input, None when spec.json does not name it."""
        relative = self.spec.inputs.get(name)
        return None if relative is None else self.workdir / relative


def write_spec(workdir: Path, spec: JobSpec) -> None:
    """Writes spec.json into the work folder."""
    write_atomic(workdir / SPEC_NAME, json.dumps(spec.to_json(), indent=1, ensure_ascii=False))


def read_spec(workdir: Path) -> JobSpec:
    """Reads and checks spec.json.

    Raises:
        JobFolderError: there is none, or it has faults; all of them are named.
    """
    value = read_json(workdir / SPEC_NAME, code="spec-unreadable")
    faults = [
        Fault(code="spec-invalid", message=message, where=f"{SPEC_NAME}: {field}")
        for field, message in _find_faults(value, workdir)
    ]
    if faults:
        text = "; ".join(f"{fault.where}: {fault.message}" for fault in faults)
        raise JobFolderError("spec-invalid", f"The job cannot be run: {text}", faults=faults)
    return JobSpec(
        job_id=value["job_id"],
        kind=value["kind"],
        code_version=value["code_version"],
        inputs=value["inputs"],
        config=value["config"],
        num_threads=value.get("num_threads"),
        num_processes=value.get("num_processes"),
        hints=value.get("hints", {}),
    )


def _find_faults(value: Mapping[str, Any], workdir: Path) -> list[tuple[str, str]]:
    faults = []
    if value.get("schema_version") != SCHEMA_VERSION:
        found = value.get("schema_version")
        faults.append(
            ("schema_version", f"{found!r} is not supported; this program reads version {SCHEMA_VERSION}.")
        )
    for name in ("job_id", "code_version"):
        if not isinstance(value.get(name), str):
            faults.append((name, "A text is expected."))
    if value.get("kind") not in KINDS:
        faults.append(("kind", f"{value.get('kind')!r} is unknown; use one of {', '.join(KINDS)}."))
    for name in ("config", "hints"):
        # A spec.json of an older version has no hints.
        if not isinstance(value.get(name, {} if name == "hints" else None), dict):
            faults.append((name, "An object is expected."))
    for name in ("num_threads", "num_processes"):
        number = value.get(name)
        if number is not None and (not isinstance(number, int) or number < 1):
            faults.append((name, "A whole number from 1 on, or null, is expected."))
    return faults + _find_input_faults(value.get("inputs"), workdir)


def _find_input_faults(inputs: Any, workdir: Path) -> list[tuple[str, str]]:
    if not isinstance(inputs, dict):
        return [("inputs", "An object is expected.")]
    faults = []
    for name, relative in inputs.items():
        path = PurePosixPath(relative) if isinstance(relative, str) else None
        if path is None or path.is_absolute() or ".." in path.parts:
            faults.append((f"inputs.{name}", "A folder below the work folder is expected."))
        elif not (workdir / path).is_dir():
            faults.append((f"inputs.{name}", f"There is no folder {relative!r} in the work folder."))
    return faults
