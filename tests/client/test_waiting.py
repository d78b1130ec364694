from collections.abc import Callable

import pytest

from client.errors import AssayApiError, ServerUnreachableError, WaitTimeoutError
from client.waiting import WaitSettings, wait_until_final


class Clock:
    """Time that passes only by sleeping."""

    def __init__(self) -> None:
        self.now_seconds = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now_seconds += seconds

    def settings(self, **changes: float) -> WaitSettings:
        return WaitSettings(clock=lambda: self.now_seconds, sleep=self.sleep, **changes)


def wait(
    clock: Clock, fetch: Callable[[], str], outages: list[str] | None = None, **changes: float
) -> list[str]:
    seen: list[str] = []
    wait_until_final(
        fetch,
        is_final=lambda state: state == "end",
        on_state=seen.append,
        on_outage=(outages if outages is not None else []).append,
        settings=clock.settings(**changes),
    )
    return seen


def states(*values: str | Exception) -> Callable[[], str]:
    left = list(values)

    def fetch() -> str:
        value = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(value, Exception):
            raise value
        return value

    return fetch


AWAY = ServerUnreachableError("server-unreachable", "away")


def test_every_state_is_told_and_pauses_grow_to_their_bound() -> None:
    clock = Clock()
    assert wait(clock, states(*"abcdefgh", "end")) == [*"abcdefgh", "end"]
    # 0.5 s, each half as much again, at most 5 s.
    assert clock.pauses == pytest.approx([0.5, 0.75, 1.125, 1.6875, 2.53125, 3.796875, 5.0, 5.0])


def test_an_end_that_is_there_already_is_not_waited_for() -> None:
    clock = Clock()
    assert wait(clock, states("end"), timeout_seconds=0) == ["end"]
    assert clock.pauses == []


def test_the_timeout_is_kept_to_the_second() -> None:
    clock = Clock()
    with pytest.raises(WaitTimeoutError, match="10 seconds"):
        wait(clock, states("a"), timeout_seconds=10)
    assert clock.now_seconds == pytest.approx(10.0)


def test_an_outage_is_sat_out() -> None:
    clock = Clock()
    outages: list[str] = []
    failing = AssayApiError(status=500, code="internal-error", title="failed", detail="")
    assert wait(clock, states("a", AWAY, failing, "end"), outages) == ["a", "end"]
    assert outages == ["away", "failed"]


def test_a_long_outage_is_an_error_and_each_begins_anew() -> None:
    clock = Clock()
    with pytest.raises(ServerUnreachableError):
        wait(clock, states(AWAY, "a", AWAY), max_outage_seconds=20)
    assert 20 < clock.now_seconds < 40


def test_a_refusal_is_not_waited_out() -> None:
    refusal = AssayApiError(status=404, code="not-found", title="Not found", detail="")
    with pytest.raises(AssayApiError):
        wait(Clock(), states(refusal))
