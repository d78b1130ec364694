"""result.json: how a job ended. It appears at once and complete, or not at all."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from workers.job.errors import JobFolderError
from workers.job.files import read_json, write_atomic

SCHEMA_VERSION = 1
RESULT_NAME = "result.json"
FAILURE_CLASSES = ("user", "infrastructure", "internal")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFailure:
    """Why a job failed.

    Attributes:
        failure_class: Who is responsible: user, infrastructure or internal.
        code: Stable kebab-case name.
        message: What, where, what to do.
        details: Single faults: objects with code, message, where, remedy.
    """

    failure_class: str
    code: str
    message: str
    details: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Returns the failure as it stands in result.json."""
        return {
            "failure_class": self.failure_class,
            "code": self.code,
            "message": self.message,
            "details": [dict(detail) for detail in self.details],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class JobResult:
    """How a job ended.

    Attributes:
        failure: None when it succeeded.
        outputs: Name of an output -> its folder, relative to where result.json lies.
        values: The summary that the database keeps.
        output_digests: Name of an output -> path of a file -> digest of its content without timings; what a
            replay
            is compared with.
    """

    failure: JobFailure | None = None
    outputs: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    output_digests: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @property
    def status(self) -> Literal["succeeded", "failed"]:
        """The word for how it ended."""
        return "succeeded" if self.failure is None else "failed"

    def to_json(self) -> dict[str, Any]:
        """Returns the content of result.json."""
        document: dict[str, Any] = {"schema_version": SCHEMA_VERSION, "status": self.status}
        if self.failure is not None:
            return {**document, "failure": self.failure.to_json()}
        return {
            **document,
            "outputs": dict(self.outputs),
            "values": dict(self.values),
            "output_digests": {name: dict(files) for name, files in self.output_digests.items()},
        }


def write_result(folder: Path, result: JobResult) -> None:
    """Writes result.json into a folder.

    Raises:
        ValueError: the values hold something that JSON cannot say, such as NaN.
    """
    text = json.dumps(result.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
    write_atomic(folder / RESULT_NAME, text)


def read_result(folder: Path) -> JobResult | None:
    """Reads result.json; None when there is none.

    Raises:
        JobFolderError: the file is there and cannot be used.
    """
    if not (folder / RESULT_NAME).exists():
        return None
    value = read_json(folder / RESULT_NAME, code="result-unreadable")
    if value.get("schema_version") != SCHEMA_VERSION or value.get("status") not in ("succeeded", "failed"):
        raise JobFolderError("result-unreadable", f"{RESULT_NAME} has no known schema_version and status.")
    if value["status"] == "failed":
        return JobResult(failure=_read_failure(value.get("failure")))
    outputs, values = value.get("outputs"), value.get("values")
    if not isinstance(outputs, dict) or not isinstance(values, dict):
        raise JobFolderError("result-unreadable", f"{RESULT_NAME} lacks outputs or values.")
    return JobResult(outputs=outputs, values=values, output_digests=value.get("output_digests", {}))


def _read_failure(value: Any) -> JobFailure:
    if not isinstance(value, dict) or value.get("failure_class") not in FAILURE_CLASSES:
        raise JobFolderError(
            "result-unreadable", f"{RESULT_NAME} has status failed and no failure with a class."
        )
    return JobFailure(
        failure_class=value["failure_class"],
        code=str(value.get("code", "unknown")),
        message=str(value.get("message", "")),
        details=tuple(item for item in value.get("details") or () if isinstance(item, dict)),
    )
