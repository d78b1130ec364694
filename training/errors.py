"""Errors of the training app."""

from registry.errors import AssayError, ConflictError, NotFoundError, PreconditionFailed, ValidationFailed


class TrainingNotFound(NotFoundError):
    """There is no such training run, raw data, preparation or review."""

    wordings = {
        "training-run-not-found": "There is no training run {run_id}.",
        "raw-data-not-found": "There is no raw data {reference!r}.{near}",
        "preparation-not-found": "There is no data preparation {preparation_id}.",
        "preparation-without-report": "Data preparation {preparation_id} is {state!r}; it has no report.",
        "review-not-found": "There is no review {task_id}.",
        "review-item-not-found": "Review {task_id} has no example {position}.",
        "handbook-row-not-found": "The handbook has no row {row!r}.{near}",
        "incident-not-found": "There is no incident {number}.",
    }


class TrainingConflict(ConflictError):
    """The run, preparation or review is not in a state that allows what is asked."""

    wordings = {
        "training-run-final": "The training run is {state!r} already; there is nothing left to cancel.",
        "preparation-final": "The data preparation is {state!r} already; there is nothing left to cancel.",
        "preparation-not-retryable": (
            "The data preparation is {state!r}; only a failed or cancelled one can be retried."
        ),
        "review-closed": "The review is closed; its verdicts do not change any more.",
        "review-incomplete": (
            "{num_open} of {num_examples} examples have no verdict yet; give them one, or close the review"
            " with allow_open."
        ),
        "mini-configuration-changed": "Somebody changed the mini configuration meanwhile; look again.",
        "review-changed": "A verdict was given while the review was being closed; look again and close it.",
        "handbook-row-exists": "The handbook has a row {row!r} already.",
        "handbook-row-not-shipped": "This version ships no row {row!r}; there is no text to go back to.",
        "check-not-asked": "Nothing asks to make a check of incident {number}.",
    }


class TrainingInvalid(ValidationFailed):
    """A training run, preparation, review or verdict that was asked for cannot be; every fault at once."""


class VerdictChanged(PreconditionFailed):
    """Somebody else gave a verdict on the example since the reviewer looked at it."""

    wordings = {
        "review-item-changed": (
            "{reviewer} gave a verdict on example {position} meanwhile: {verdict} (its ETag is {etag});"
            " look again."
        ),
    }


class ReviewerNeeded(AssayError):
    """A verdict is a person's; neither the system nor a token without a user may give it."""

    default_status = 403
    wordings = {
        "reviewer-needed": "Verdicts are given by people; this actor is none.",
        "incident-person-needed": "Incidents are closed and answered by people; this actor is none.",
    }


class HandbookRowChanged(PreconditionFailed):
    """Somebody else edited the row since its reader looked at it."""

    wordings = {"handbook-row-changed": "Somebody edited row {row!r} meanwhile; look again."}


class IncidentChanged(PreconditionFailed):
    """Somebody else changed the incident since its reader looked at it."""

    wordings = {
        "incident-changed": (
            "Incident {number} was changed meanwhile: it is {state!r} (its ETag is {etag}); look again."
        ),
    }
