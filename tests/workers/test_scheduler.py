"""The scheduler's turn: every step is tried, whatever another one does."""

from typing import Any

import pytest

from workers import scheduler

pytestmark = pytest.mark.django_db


def test_a_turn_on_an_empty_database_changes_nothing() -> None:
    assert scheduler.run_turn(turn=0) == 0


def test_a_failing_step_does_not_keep_the_others_from_being_done(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def fail(**_: Any) -> int:
        raise RuntimeError("a fault")

    monkeypatch.setattr(scheduler, "requeue_lapsed_jobs", fail)
    monkeypatch.setattr(scheduler.pipeline, "advance_all", lambda: done.append("advance"))
    monkeypatch.setattr(scheduler.training_runs, "reconcile_all", lambda: done.append("reconcile"))
    assert scheduler.run_turn(turn=1) == 1
    assert done == ["advance", "reconcile"]


def test_housekeeping_is_done_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = []
    monkeypatch.setattr(scheduler, "expire_uploads", lambda **_: turns.append(turn))
    for turn in range(201):
        scheduler.run_turn(turn=turn)
    assert turns == [0, 100, 200]


def test_the_first_turn_misses_messages_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[Any] = []

    def resend(**options: Any) -> int:
        waits.append(options.get("min_wait_seconds", "default"))
        return 0

    monkeypatch.setattr(scheduler, "resend_waiting_jobs", resend)
    for turn in range(2):
        scheduler.run_turn(turn=turn)
    assert waits == [0.0, "default"]
