"""Each planted fault on a tiny model: the first bad step and the cause."""

import json
from pathlib import Path

import pytest
import torch

from tests.training.engine.forensics.faulty import (
    FLOAT16,
    POISONED_ID,
    break_rare_embedding,
    make_inputs,
    make_loop,
    make_rare_word_meet,
    make_settings,
    run_until_stopped,
)
from tests.training.engine.reporters import RecordingReporter
from training.engine.checkpoints import Checkpoint
from training.engine.errors import NotFinite, TrainingFailed
from training.engine.forensics.evidence import BadPart, Cause
from training.engine.forensics.investigation import explain_not_finite, investigate
from training.engine.forensics.replay import ReplayLimits
from training.engine.forensics.step_history import StepHistory
from training.engine.forensics.training_inputs import TrainingInputs
from training.engine.step_plan import StepPlan


def first_step_with_the_poison(inputs: TrainingInputs) -> int:
    plan = StepPlan(inputs.rows, inputs.settings, pad_token_id=0)
    return next(
        step
        for step, batches in plan.iterate(after_step=0)
        if any(POISONED_ID in batch.example_ids for batch in batches)
    )


def test_one_example_poisons_its_step(tmp_path: Path) -> None:
    # (8 x 1e20)^2 is beyond float32 (3.4e38).
    inputs = make_inputs(tmp_path, damage=make_rare_word_meet(1e20))
    stopped = run_until_stopped(inputs)
    assert stopped.error.step == first_step_with_the_poison(inputs) > 1
    found = investigate(inputs, error=stopped.error, history=stopped.history.records)
    assert found.judgement.cause is Cause.POISONED_EXAMPLE
    assert found.evidence.first_bad_step == stopped.error.step
    assert [example.example_id for example in found.evidence.bad_examples] == [POISONED_ID]
    assert len(found.evidence.examples) == 4
    assert POISONED_ID in found.judgement.message
    document = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert document["examples"][0]["example_id"] == POISONED_ID
    assert document["examples"][0]["is_finite"] is False
    assert "zebra" in document["examples"][0]["text"]
    assert [step for step, _ in document["losses"]] == list(range(1, stopped.error.step))
    assert document["checkpoint_step"] == stopped.error.step - 1


def test_a_base_with_nan_names_the_tensor(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path, damage=break_rare_embedding)
    stopped = run_until_stopped(inputs)
    found = investigate(inputs, error=stopped.error)
    assert found.judgement.cause is Cause.BASE_WEIGHTS
    assert found.evidence.first_bad_step == first_step_with_the_poison(inputs)
    assert found.evidence.bad_base_tensors == ("model.embed_tokens.weight",)
    assert "model.embed_tokens.weight" in found.judgement.message
    assert found.first_bad_module == "model.embed_tokens"
    assert found.modules[0].is_finite is False


def test_float16_overflow_is_finite_in_float32(tmp_path: Path) -> None:
    # (8 x 100)^2 is beyond float16 (65504).
    inputs = make_inputs(tmp_path, damage=make_rare_word_meet(100.0), precision=FLOAT16)
    stopped = run_until_stopped(inputs)
    found = investigate(inputs, error=stopped.error)
    assert found.judgement.cause is Cause.FLOAT16_OVERFLOW
    assert found.evidence.wide_dtype == "float32"
    assert found.evidence.is_finite_when_wide is True
    assert found.evidence.first_bad_step == stopped.error.step


def test_a_rate_far_too_high(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path, settings=make_settings(learning_rate=3e37))
    stopped = run_until_stopped(inputs)
    found = investigate(inputs, error=stopped.error, history=stopped.history.records)
    assert found.judgement.cause is Cause.LEARNING_RATE
    assert found.evidence.first_bad_step == stopped.error.step == 2
    assert len(found.evidence.bad_examples) == 4


def test_a_parameter_goes_bad_a_step_before_the_loss(tmp_path: Path) -> None:
    # Decay takes 3e37 x 1e3 of each weight, beyond float32; loss and gradient of step 1 are fine.
    inputs = make_inputs(tmp_path, settings=make_settings(learning_rate=3e37, weight_decay=1e3))
    stopped = run_until_stopped(inputs)
    assert stopped.error.step == 2
    found = investigate(inputs, error=stopped.error, history=stopped.history.records)
    assert (found.evidence.first_bad_step, found.evidence.what) == (1, BadPart.PARAMETER)
    assert found.judgement.cause is Cause.LEARNING_RATE
    assert "noticed it at step 2" in found.judgement.message
    assert found.checkpoint_step == 0


@pytest.mark.parametrize("num_earlier", [0, 3])
def test_a_damaged_moment_in_a_checkpoint(num_earlier: int, tmp_path: Path) -> None:
    settings = make_settings(max_steps=6)
    inputs = make_inputs(tmp_path, settings=settings)
    loop = make_loop(inputs, StepHistory())
    loop.train()
    folder = inputs.checkpoints
    assert folder is not None
    assert folder.list_steps() == (1, 2, 3, 4, 5)
    sound = folder.load(4)
    name = next(iter(sound.moments))
    moments = {
        **sound.moments,
        name: {**sound.moments[name], "exp_avg": torch.full_like(sound.moments[name]["exp_avg"], torch.nan)},
    }
    for step in (5, *range(1, 4 - num_earlier)):
        (tmp_path / f"step-{step:08d}" / "state.json").unlink()
    folder.save(Checkpoint(step=4, trainables=sound.trainables, moments=moments, progress=sound.progress))
    stopped = run_until_stopped(inputs)
    # NaN moments make the weights NaN in step 5, whose loss is still fine.
    assert stopped.error.step == 6
    found = investigate(inputs, error=stopped.error)
    assert found.judgement.cause is Cause.OPTIMISER_STATE
    assert (found.evidence.first_bad_step, found.evidence.damaged_step) == (5, 4)
    assert found.evidence.bad_state_tensors == (f"exp_avg of {name}",)


def test_what_does_not_come_again_is_unknown(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path, settings=make_settings(max_steps=5))
    error = NotFinite(what="loss", step=3, example_ids=("e1",))
    found = investigate(inputs, error=error)
    assert found.judgement.cause is Cause.UNKNOWN
    assert found.evidence.first_bad_step is None
    assert found.to_json()["step"] == 3


def test_work_is_bounded_and_the_stopped_weights_help(tmp_path: Path) -> None:
    inputs = make_inputs(None, damage=make_rare_word_meet(1e20))
    stopped = run_until_stopped(inputs)
    assert stopped.error.step == 3
    limits = ReplayLimits(max_steps=1)
    without = investigate(inputs, error=stopped.error, limits=limits)
    assert without.evidence.first_bad_step is None
    assert "1 steps were repeated" in without.judgement.message
    assert without.judgement.cause is Cause.POISONED_EXAMPLE
    weights = {name: tensor.detach().clone() for name, tensor in stopped.loop.trainables.items()}
    helped = investigate(inputs, error=stopped.error, stopped=weights, limits=limits)
    assert helped.evidence.first_bad_step == 3


def test_without_an_error_a_bad_step_is_looked_for(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path, damage=make_rare_word_meet(1e20))
    stopped = run_until_stopped(inputs)
    assert investigate(inputs).evidence.first_bad_step == stopped.error.step
    healthy = investigate(make_inputs(None, settings=make_settings(max_steps=3)))
    assert healthy.evidence.first_bad_step is None
    assert healthy.evidence.examples == ()


def test_packed_rows_are_looked_at_one_by_one(tmp_path: Path) -> None:
    settings = make_settings(packing=True, max_length_tokens=120)
    inputs = make_inputs(tmp_path, damage=make_rare_word_meet(1e20), settings=settings)
    stopped = run_until_stopped(inputs)
    found = investigate(inputs, error=stopped.error)
    assert [example.example_id for example in found.evidence.bad_examples] == [POISONED_ID]
    assert found.judgement.cause is Cause.POISONED_EXAMPLE


def test_explaining_records_and_returns_a_better_error(tmp_path: Path) -> None:
    inputs = make_inputs(tmp_path, damage=make_rare_word_meet(1e20))
    stopped = run_until_stopped(inputs)
    report = RecordingReporter()
    state = torch.random.get_rng_state()
    explained = explain_not_finite(stopped.error, lambda: inputs, report, history=stopped.history.records)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert isinstance(explained, TrainingFailed)
    assert explained.code == "loss-not-finite"
    assert "Likely cause: poisoned-example" in explained.message
    (record,) = report.records
    assert record[0] == "not_finite"
    assert record[1]["cause"] == "poisoned-example"


def test_a_failed_investigation_gives_the_plain_error_back() -> None:
    def read() -> TrainingInputs:
        raise RuntimeError("out of memory")

    error = NotFinite(what="loss", step=3, example_ids=("e1",))
    report = RecordingReporter()
    assert explain_not_finite(error, read, report) is error
    assert report.records == []
    assert any("out of memory" in message for _, message in report.logs)
