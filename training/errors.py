"""Errors of the training app."""

from registry.errors import ConflictError, NotFoundError, ValidationFailed


class TrainingNotFound(NotFoundError):
    """There is no such training run."""

    wordings = {"training-run-not-found": "There is no training run {run_id}."}


class TrainingConflict(ConflictError):
    """The run is not in a state that allows what is asked."""

    wordings = {
        "training-run-final": "The training run is {state!r} already; there is nothing left to cancel."
    }


class TrainingInvalid(ValidationFailed):
    """A training run that was asked for cannot be made; every fault at once."""
