"""Collects the faults of a request that names several things, so that all of them are answered at once."""

from collections.abc import Callable
from typing import TypeVar

from registry.errors import ConflictError, Fault, NotFoundError, ValidationFailed

Found = TypeVar("Found")


def look_up(faults: list[Fault], where: str, find: Callable[[], Found]) -> Found | None:
    """What `find` gives; None, with its reasons added to `faults`, when there is no such thing or it does not
    fit.

    Args:
        faults: Collected so far; grows.
        where: Place of the name in the request, as a JSON pointer.
        find: Raises `NotFoundError`, `ConflictError` or `ValidationFailed` when it has nothing to give.
    """
    try:
        return find()
    except ValidationFailed as error:
        faults.extend(error.faults or [Fault(code=error.code, message=error.detail, where=where)])
    except (NotFoundError, ConflictError) as error:
        faults.append(Fault(code=error.code, message=error.detail, where=where))
    return None
