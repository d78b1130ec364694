import json
import math

from training.engine.early_stopping import MIN_IMPROVEMENT, EarlyStopping


def observe_all(stopping: EarlyStopping, losses: list[float]) -> list[tuple[bool, bool]]:
    return [(stopping.observe(step, loss), stopping.should_stop) for step, loss in enumerate(losses, start=1)]


def test_patience_counts_measurements_since_the_best() -> None:
    """By hand: best at 2; 3 and 4 bring nothing."""
    stopping = EarlyStopping(patience=2)
    seen = observe_all(stopping, [3.0, 2.0, 2.5, 2.0])
    assert seen == [(True, False), (True, False), (False, False), (False, True)]
    assert (stopping.best_loss, stopping.best_step) == (2.0, 2)


def test_an_improvement_begins_the_count_anew() -> None:
    stopping = EarlyStopping(patience=2)
    assert [stop for _, stop in observe_all(stopping, [3.0, 3.1, 2.9, 3.0, 3.0])] == [False] * 4 + [True]


def test_what_rounding_may_give_is_no_improvement() -> None:
    stopping = EarlyStopping(patience=1)
    assert stopping.observe(1, 1.0)
    assert not stopping.observe(2, 1.0 - MIN_IMPROVEMENT / 2)
    assert stopping.should_stop


def test_without_patience_nothing_stops() -> None:
    stopping = EarlyStopping(patience=None)
    assert not any(stop for _, stop in observe_all(stopping, [1.0, 2.0, 3.0, 4.0]))
    assert stopping.best_step == 1


def test_a_measurement_that_is_not_finite_is_never_the_best() -> None:
    stopping = EarlyStopping(patience=3)
    assert [best for best, _ in observe_all(stopping, [math.nan, math.inf, 5.0, math.nan])] == [
        False, False, True, False,
    ]  # fmt: skip
    assert stopping.best_loss == 5.0


def test_the_state_survives_json() -> None:
    stopping = EarlyStopping(patience=2)
    observe_all(stopping, [3.0, 2.0, 2.5])
    assert EarlyStopping.from_json(json.loads(json.dumps(stopping.to_json()))) == stopping
