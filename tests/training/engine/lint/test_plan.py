import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.engine.lint.plans import make_data, make_plan
from training.engine.batches import count_steps
from training.engine.data.distributions import LengthCounter
from training.engine.lint.plan import Fact, LengthFacts, TrainingPlan, need, summarise_lengths


def test_the_numbers_of_a_run() -> None:
    plan = make_plan()
    # 2000 rows, 1 x 16 a step, 2 passes: 125 steps each.
    assert (plan.effective_batch, plan.num_steps, plan.num_passes) == (16, 250, 2.0)
    by_steps = make_plan(max_steps=25)
    assert (by_steps.num_steps, by_steps.num_passes) == (25, pytest.approx(0.2))


def test_rows_that_are_too_long_are_not_trained_on() -> None:
    lengths = LengthFacts(common_tokens=3000, longest_tokens=4000, num_too_long=400)
    plan = make_plan(data=make_data(2000, lengths=lengths))
    assert (plan.num_rows, plan.num_steps, plan.longest_row_tokens) == (1600, 200, 2048)
    assert make_plan().longest_row_tokens == 1200
    assert make_plan(data=None).longest_row_tokens == 2048


@given(
    st.integers(1, 5000),
    st.integers(1, 64),
    st.integers(1, 64),
    st.floats(0.01, 10),
    st.none() | st.integers(1, 999),
)
def test_steps_are_those_of_the_trainer(
    num_rows: int, batch: int, accumulation: int, epochs: float, max_steps: int | None
) -> None:
    plan = make_plan(
        data=make_data(num_rows),
        per_device_batch_size=batch,
        gradient_accumulation_steps=accumulation,
        num_epochs=epochs,
        max_steps=max_steps,
    )
    assert plan.num_steps == count_steps(
        num_rows,
        batch_size=batch,
        accumulation_steps=accumulation,
        num_epochs=epochs,
        max_steps=max_steps,
    )


def test_what_is_known() -> None:
    everything = make_plan().known
    assert everything == set(Fact)
    nothing = TrainingPlan(config=make_plan().config)
    # The number of epochs is configured.
    assert nothing.known == {Fact.PASSES}
    assert TrainingPlan(config=make_plan(max_steps=5).config).known == {Fact.STEPS}
    assert make_plan(has_held_out=False).known == set(Fact)


def test_lengths_are_summarised() -> None:
    counter = LengthCounter()
    for length in range(1, 101):
        counter.add(length)
    assert summarise_lengths(counter, max_length_tokens=98) == LengthFacts(
        common_tokens=95, longest_tokens=100, num_too_long=2
    )
    assert summarise_lengths(LengthCounter(), max_length_tokens=98) is None


def test_a_fact_that_is_not_declared_is_a_fault_of_the_rule() -> None:
    assert need(0) == 0
    with pytest.raises(LookupError):
        need(None)
