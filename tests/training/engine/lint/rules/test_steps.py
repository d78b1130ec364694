from typing import Any

import pytest

from registry.artifacts.findings import Severity
from tests.training.engine.lint.plans import find, make_data, make_plan, severity_of

WARNING, INFO = Severity.WARNING, Severity.INFO


@pytest.mark.parametrize(
    ("settings", "num_rows", "is_told"),
    [
        ({"num_epochs": 3}, 2000, False),
        ({"num_epochs": 3.5}, 2000, True),
        # 125 steps a pass.
        ({"max_steps": 375}, 2000, False),
        ({"max_steps": 376}, 2000, True),
    ],
)
def test_more_than_three_passes(settings: dict[str, Any], num_rows: int, is_told: bool) -> None:
    plan = make_plan(data=make_data(num_rows), **settings)
    assert (severity_of(plan, "too-many-epochs") is WARNING) is is_told


def test_passes_are_known_without_data_unless_steps_are_given() -> None:
    assert find(make_plan(data=None, num_epochs=10), "too-many-epochs") is not None
    finding = find(make_plan(max_steps=500), "too-many-epochs")
    assert finding is not None
    # 500 / 125 = 4.
    assert finding.message.startswith("4 passes over the data (500 steps of 16 rows, 2000 rows in all)")
    assert finding.remedy == "Set max_steps to null and num_epochs to 2."


@pytest.mark.parametrize(
    ("settings", "is_told"),
    [
        ({"num_epochs": 0.5}, True),
        ({"num_epochs": 1}, False),
        ({"max_steps": 124}, True),
        ({"max_steps": 125}, False),
    ],
)
def test_less_than_a_pass(settings: dict[str, Any], is_told: bool) -> None:
    assert (severity_of(make_plan(**settings), "part-of-the-data-unused") is WARNING) is is_told


@pytest.mark.parametrize(
    ("num_rows", "settings", "is_told"),
    [
        (400, {}, False),  # 25 steps a pass, 2 passes
        (384, {}, True),  # 24 steps a pass
        (2000, {"max_steps": 49}, True),
        (2000, {"max_steps": 50}, False),
    ],
)
def test_fewer_steps_than_it_takes_to_judge(num_rows: int, settings: dict[str, Any], is_told: bool) -> None:
    plan = make_plan(data=make_data(num_rows), **settings)
    assert (severity_of(plan, "few-steps") is WARNING) is is_told


def test_few_steps_are_known_from_the_configuration() -> None:
    assert find(make_plan(data=None, max_steps=10), "few-steps") is not None


def test_a_batch_larger_than_the_data() -> None:
    plan = make_plan(data=make_data(300), per_device_batch_size=8, gradient_accumulation_steps=38)  # 304
    assert severity_of(plan, "batch-exceeds-the-data") is WARNING
    plan = make_plan(data=make_data(304), per_device_batch_size=8, gradient_accumulation_steps=38)
    assert find(plan, "batch-exceeds-the-data") is None


@pytest.mark.parametrize(("batch", "accumulation", "is_told"), [(1, 7, True), (1, 8, False), (4, 1, True)])
def test_a_small_batch(batch: int, accumulation: int, is_told: bool) -> None:
    plan = make_plan(per_device_batch_size=batch, gradient_accumulation_steps=accumulation)
    assert (severity_of(plan, "small-effective-batch") is INFO) is is_told


def test_a_held_out_loss_that_comes_too_late() -> None:
    # 250 steps.
    finding = find(make_plan(eval_every_steps=250), "held-out-loss-only-once")
    assert finding is not None and finding.remedy == "Set eval_every_steps to 50 or less."
    assert find(make_plan(eval_every_steps=249), "held-out-loss-only-once") is None
    assert find(make_plan(eval_every_steps=250, has_held_out=False), "held-out-loss-only-once") is None
    assert find(make_plan(eval_every_steps=250, has_held_out=None), "held-out-loss-only-once") is not None


@pytest.mark.parametrize(
    ("log_every", "max_steps", "num_points"),
    [
        (10, None, None),  # step 1 and 10, 20, 30, 40, 50
        (12, None, None),  # step 1 and 12, 24, 36, 48
        (13, None, 4),  # step 1 and 13, 26, 39
        (100, None, 1),
        (5, 24, None),  # step 1 and 5, 10, 15, 20
        (1, 3, None),  # every step there is
        (10, 24, 3),
    ],
)
def test_a_coarse_log(log_every: int, max_steps: int | None, num_points: int | None) -> None:
    finding = find(make_plan(log_every_steps=log_every, max_steps=max_steps), "coarse-log")
    if num_points is None:
        assert finding is None
    else:
        assert finding is not None and f"give {num_points} point" in finding.message
