"""The scheduler's turn: every step is tried, whatever another one does."""

from typing import Any

import pytest

from evaluation.services import pipeline
from training.services import runs as training_runs
from workers import scheduler

pytestmark = pytest.mark.django_db


def test_a_turn_on_an_empty_database_changes_nothing() -> None:
    assert scheduler.run_turn(turn=0) == 0


def test_a_failing_step_does_not_keep_the_others_from_being_done(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def fail(**_: Any) -> int:
        raise RuntimeError("a fault")

    monkeypatch.setattr(scheduler, "requeue_lapsed_jobs", fail)
    monkeypatch.setattr(pipeline, "advance_all", lambda: done.append("advance"))
    monkeypatch.setattr(training_runs, "reconcile_all", lambda: done.append("reconcile"))
    assert scheduler.run_turn(turn=1) == 1
    assert done == ["advance", "reconcile"]


def test_housekeeping_is_done_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    monkeypatch.setattr(scheduler, "expire_uploads", lambda **_: looks.append("look"))
    num_looks = []
    for turn in (0, 1, 99, 100, 101, 200):
        scheduler.run_turn(turn=turn)
        num_looks.append(len(looks))
    assert num_looks == [1, 1, 1, 2, 2, 3]


def test_the_first_turn_misses_messages_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[Any] = []

    def resend(**options: Any) -> int:
        waits.append(options.get("min_wait_seconds", "default"))
        return 0

    monkeypatch.setattr(scheduler, "resend_waiting_jobs", resend)
    for turn in range(2):
        scheduler.run_turn(turn=turn)
    assert waits == [0.0, "default"]
