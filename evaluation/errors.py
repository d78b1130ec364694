"""Errors of the evaluation app; each is one of the registry's kinds with the wording of its own codes."""

from collections.abc import Iterable

from evaluation.engine.errors import Fault as EngineFault
from registry.errors import (
    AssayError,
    ConflictError,
    Fault,
    NotFoundError,
    PreconditionFailed,
    ValidationFailed,
)


class EvaluationNotFound(NotFoundError):
    """There is no such suite, policy, run, decision or override."""

    wordings = {
        "suite-not-found": "There is no suite {name!r}.{near}",
        "suite-version-not-found": "There is no suite version {reference!r}; the latest is {latest}.",
        "policy-not-found": "There is no policy {name!r}.{near}",
        "policy-version-not-found": "There is no policy version {reference!r}; the latest is {latest}.",
        "submission-not-found": "There is no submission {run_id}.",
        "baseline-not-found": "There is no baseline run {run_id}.",
        "run-not-found": "There is no evaluation run {run_id}.",
        "decision-not-found": "There is no decision {decision_id}.",
        "override-not-found": "There is no override {override_id}.",
        "triage-not-found": "There is no triage {triage_id}.",
        "triage-item-not-found": "Triage {triage_id} has no sample {position}.",
    }


class EvaluationConflict(ConflictError):
    """The run or the decision is not in a state that allows what is asked."""

    wordings = {
        "policy-version-taken": (
            "Policy {reference} exists with other rules; a policy version never changes."
            " Leave the version out, or give the next number."
        ),
        "submission-final": "The submission is {state!r} already; there is nothing left to cancel.",
        "submission-not-retryable": (
            "The submission is {state!r}; only a failed or cancelled one can be retried."
            " Submit changed bytes anew."
        ),
        "training-data-differs": (
            "The same bytes were submitted as {version} with {known}; that cannot change any more."
            " Submit them under another adapter name to have them judged with other training data."
        ),
        "run-not-scored": "The run is {state!r}; a decision needs its results.",
        "version-undecided": (
            "Version {reference} has no decision in the form {form!r} that channel {channel!r} serves;"
            " evaluate it with a suite that ships this form."
        ),
        "override-not-needed": "The decision is 'passed'; there is nothing to set aside.",
        "override-missing": (
            "Nobody asked for an override of the decision on {reference} yet."
            " Ask for one with a reason; a second person confirms it."
        ),
        "override-unconfirmed": (
            "The override of the decision on {reference} waits for a second person; {asked_by} asked for it."
        ),
        "override-confirmed": "The override was confirmed by {confirmed_by} already.",
        "second-person-needed": "{name} asked for this override; another person must confirm it.",
    }


class TriageConflict(ConflictError):
    """The triage is not in a state that allows what is asked."""

    wordings = {
        "triage-final": "The triage is {state!r} already; there is nothing left to cancel.",
        "triage-not-sorted": "The triage is {state!r}; samples are confirmed while it is 'sorted'.",
        "triage-unconfirmed": (
            "{num_open} samples that failed or could not be judged are not confirmed; confirm them, or close"
            " the triage with allow_unconfirmed: its verdict then stays preliminary."
        ),
    }


class TriageItemChanged(PreconditionFailed):
    """Somebody else has said what a sample lacks since the person looked at it."""

    wordings = {
        "triage-item-changed": (
            "{person} said of sample {position} meanwhile: {kind} (its ETag is {etag}); look again."
        ),
    }


class TriageRefused(ValidationFailed):
    """A triage, or what is said of a sample, cannot be; every fault at once."""


class PersonNeeded(AssayError):
    """An override, or a word on a sample, is a person's act; neither the system nor a token without a user
    may make it.
    """

    default_status = 403
    wordings = {
        "person-needed": "An override is asked for and confirmed by people; this actor is none.",
        "triage-person-needed": "What a sample lacks is confirmed by people; this actor is none.",
    }


class SubmissionInvalid(ValidationFailed):
    """A submission names things that do not exist or do not fit; every fault at once."""


class RegistrationInvalid(ValidationFailed):
    """A suite or policy that was sent cannot be used; every fault at once."""


class ReportError(Exception):
    """A report artifact cannot be read as the results of an evaluate job. Never the submitter's fault."""


class GateError(Exception):
    """The rules cannot be applied to what is stored. Never the submitter's fault."""


def registry_faults(faults: Iterable[EngineFault]) -> list[Fault]:
    """The engine's faults as members of a problem document."""
    return [
        Fault(code=fault.code, message=fault.message, where=fault.where, remedy=fault.remedy or None)
        for fault in faults
    ]
