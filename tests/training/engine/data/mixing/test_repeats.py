import math
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.mixing.repeats import plan_repeats


@given(
    st.lists(st.sampled_from(["a", "a", "a", "b", "c", None]), max_size=60),
    st.integers(1, 4),
    st.integers(0, 3),
)
def test_numbers_come_out_to_less_than_one(values: list[str | None], limit: int, seed: int) -> None:
    plan = plan_repeats(values, max_repeats=limit, seed=seed)
    counts = Counter(value for value in values if value is not None)
    assert all(1 <= times <= limit for times in plan.times)
    assert all(times == 1 for value, times in zip(values, plan.times, strict=True) if value is None)
    for item in plan.values:
        factor = min(limit, math.sqrt(max(counts.values()) / counts[item.value]))
        assert abs(item.num_after - factor * counts[item.value]) < 1 + 1e-9
    assert sum(item.num_after for item in plan.values) == sum(
        times for value, times in zip(values, plan.times, strict=True) if value is not None
    )


def test_other_values_do_not_move_repeats() -> None:
    values: list[str | None] = ["a"] * 40 + ["b"] * 10 + ["c"] * 3
    with_c = plan_repeats(values, max_repeats=3, seed=1)
    without = plan_repeats(values[:50], max_repeats=3, seed=1)
    assert with_c.times[:50] == without.times
