"""Errors of the job process itself; those of the engines are told apart in `failures`."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of a job's folder.

    Attributes:
        code: Stable kebab-case name.
        message: What is wrong.
        where: The file and field.
    """

    code: str
    message: str
    where: str


class JobFolderError(Exception):
    """A file of the work folder cannot be used; `faults` names every reason.

    Attributes:
        code: Stable kebab-case name of the error.
    """

    def __init__(self, code: str, message: str, *, faults: Sequence[Fault] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.faults = tuple(faults)


class StepRefused(Exception):
    """A step cannot be done with what it was given, for a reason that the engines do not know of.

    Attributes:
        code: Stable kebab-case name of the reason.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
