"""Errors of the evaluation engine. Each carries a stable kebab-case code and says what to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

FailureClass = Literal["user", "infrastructure", "internal"]


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with an input.

    Attributes:
        code: Stable kebab-case name of the kind of fault.
        message: What is wrong.
        where: The place, such as ``data.jsonl line 17`` or ``suite.json: min_score``.
        remedy: What to do about it; empty when the message says it.
    """

    code: str
    message: str
    where: str
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        """Return the fault as an entry of a problem document's or a job result's ``errors``."""
        return {"code": self.code, "message": self.message, "where": self.where, "remedy": self.remedy}


class EvaluationError(Exception):
    """Base of the engine's errors.

    Attributes:
        code: Stable kebab-case name of the error.
        failure_class: Who is responsible: the user's input, the machine, or this code.
        faults: Every single fault, when there can be several.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        failure_class: FailureClass = "user",
        faults: Sequence[Fault] = (),
    ) -> None:
        """Keep the code, the class and the single faults beside the message."""
        super().__init__(message)
        self.code = code
        self.message = message
        self.failure_class: FailureClass = failure_class
        self.faults = tuple(faults)

    def to_json(self) -> dict[str, Any]:
        """Return the error in the form of a job result's ``failure``."""
        return {
            "failure_class": self.failure_class,
            "code": self.code,
            "message": self.message,
            "details": [fault.to_json() for fault in self.faults],
        }


class SuiteError(EvaluationError):
    """A suite (its definition or its sets) cannot be used."""


class PromptError(EvaluationError):
    """A chat template or tokenizer cannot render the prompts."""


class PolicyError(EvaluationError):
    """A policy document is not valid."""


class EngineError(EvaluationError):
    """An engine process failed.

    Attributes:
        exit_code: Exit status of the process; negative for a signal, as in ``subprocess``.
        log_tail: The last lines of its log.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        failure_class: FailureClass,
        exit_code: int | None,
        log_tail: str,
    ) -> None:
        """Keep the exit status and the end of the log beside the message."""
        super().__init__(code, message, failure_class=failure_class)
        self.exit_code = exit_code
        self.log_tail = log_tail

    def to_json(self) -> dict[str, Any]:
        """Return the failure with the end of the engine's log as its only detail."""
        document = super().to_json()
        if self.log_tail:
            document["details"] = [
                {"code": "engine-log", "message": self.log_tail, "where": "engine.log", "remedy": ""}
            ]
        return document


def describe_faults(faults: Sequence[Fault], num_faults: int | None = None) -> str:
    """Return a short text that names the first faults and how many there are.

    Args:
        faults: The faults that were kept.
        num_faults: How many were found in all, when more than were kept.
    """
    total = len(faults) if num_faults is None else num_faults
    shown = "; ".join(f"{fault.where}: {fault.message}" for fault in faults[:3])
    more = f" (and {total - 3} more)" if total > 3 else ""
    return f"{total} fault{'s' if total != 1 else ''}: {shown}{more}"
