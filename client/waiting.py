"""Waiting for something on the server to end, through its restarts and network gaps."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from client.errors import AssayApiError, ServerUnreachableError, WaitTimeoutError

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitSettings:
    """How to wait.

    Attributes:
        timeout_seconds: Longest wait, or None without limit.
        first_interval_seconds: Pause before the second look; grows by half each time.
        max_interval_seconds: Bound of the pauses.
        max_outage_seconds: How long the server may be away in one piece.
        clock: Monotonic seconds; tests replace it.
        sleep: Called with seconds; tests replace it.
    """

    timeout_seconds: float | None = None
    first_interval_seconds: float = 0.5
    max_interval_seconds: float = 5.0
    max_outage_seconds: float = 600.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def wait_until_final(
    fetch: Callable[[], T],
    *,
    is_final: Callable[[T], bool],
    on_state: Callable[[T], None],
    on_outage: Callable[[str], None],
    settings: WaitSettings,
) -> T:
    """Look again and again until ``is_final``, and return the last state.

    Args:
        fetch: Asks the server.
        is_final: Whether the end is reached.
        on_state: Told every state, the last one included.
        on_outage: Told when the server is away.
        settings: Pauses and limits.

    Raises:
        WaitTimeoutError: The end did not come in time; what was waited for goes on.
        ServerUnreachableError: The server was away for too long.
        AssayApiError: The server refused to tell.
    """
    begin_seconds = settings.clock()
    outage_began_seconds: float | None = None
    interval_seconds = settings.first_interval_seconds
    while True:
        try:
            state = fetch()
        except (ServerUnreachableError, AssayApiError) as error:
            if isinstance(error, AssayApiError) and not error.is_transient and error.status < 500:
                raise
            now_seconds = settings.clock()
            outage_began_seconds = now_seconds if outage_began_seconds is None else outage_began_seconds
            if now_seconds - outage_began_seconds > settings.max_outage_seconds:
                raise
            on_outage(error.message)
        else:
            outage_began_seconds = None
            on_state(state)
            if is_final(state):
                return state
        _require_time(settings, begin_seconds)
        settings.sleep(_bounded_pause(settings, begin_seconds, interval_seconds))
        interval_seconds = min(settings.max_interval_seconds, interval_seconds * 1.5)


def _require_time(settings: WaitSettings, begin_seconds: float) -> None:
    timeout_seconds = settings.timeout_seconds
    if timeout_seconds is not None and settings.clock() - begin_seconds >= timeout_seconds:
        raise WaitTimeoutError("wait-timeout", f"The end did not come within {timeout_seconds:g} seconds.")


def _bounded_pause(settings: WaitSettings, begin_seconds: float, interval_seconds: float) -> float:
    if settings.timeout_seconds is None:
        return interval_seconds
    left_seconds = settings.timeout_seconds - (settings.clock() - begin_seconds)
    return max(0.0, min(interval_seconds, left_seconds))
