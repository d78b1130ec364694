"""The life of a training: interruptions, early stop, time limit, float16, observers."""

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from tests.fixtures.models import random_llama
from tests.training.engine.reporters import RecordingReporter
from tests.training.engine.small_runs import (
    Interrupted,
    StepList,
    are_same,
    make_config,
    read_adapter,
    train,
)
from tests.training.engine.tiny import make_model, make_rows
from training.engine import held_out, loss_scale
from training.engine.config import OptimisationSettings
from training.engine.device import Precision
from training.engine.errors import NotFinite, TrainingFailed
from training.engine.process_group import SingleProcess
from training.engine.trained_model import AdapterModel
from training.engine.training_loop import TrainingLoop
from training.engine.training_rows import choose_rows

CPU = torch.device("cpu")
FLOAT32 = Precision(CPU, torch.float32)
ROOT = Path(__file__).parents[3]


def is_same_record(left: Any, right: Any) -> bool:
    """Whether two step records agree in everything but time and memory."""
    names = ("step", "loss", "gradient_norm", "learning_rate", "num_tokens", "num_trained_tokens")
    return all(getattr(left, name) == getattr(right, name) for name in names)


@pytest.mark.parametrize(
    ("interrupt_after", "resumed_from", "training"),
    [
        (1, 0, {}),
        (
            2,
            0,
            {"gradient_checkpointing": True},
        ),  # a step's checkpoint is written after its observers are told
        (3, 2, {"gradient_accumulation_steps": 1, "dtype": "float16"}),
        (4, 2, {"dtype": "bfloat16", "packing": True, "max_length_tokens": 80}),
        (3, 2, {"early_stopping_patience": 2, "eval_every_steps": 1}),
    ],
)
def test_an_interrupted_training_ends_as_if_it_had_not_been(
    interrupt_after: int, resumed_from: int, training: dict[str, Any], tmp_path: Path
) -> None:
    settings: dict[str, Any] = {
        "max_steps": 5, "per_device_batch_size": 1, "save_every_steps": 2, "eval_every_steps": 3, **training,
    }  # fmt: skip
    config = make_config({"lora_dropout": 0.3}, **settings)
    whole = StepList()
    undisturbed = train(tmp_path, "whole", config=config, observers=[whole])
    kept = tmp_path / "checkpoints"
    with pytest.raises(Interrupted):
        train(
            tmp_path, "resumed", config=config, observers=[StepList(interrupt_after=interrupt_after)],
            checkpoints=kept,
        )  # fmt: skip
    rest = StepList()
    resumed = train(tmp_path, "resumed", config=config, observers=[rest], checkpoints=kept)
    assert resumed.resumed_from_step == resumed_from
    assert are_same(read_adapter(tmp_path, "whole"), read_adapter(tmp_path, "resumed"))
    assert resumed.final_loss == undisturbed.final_loss
    assert resumed.held_out_loss == undisturbed.held_out_loss
    assert resumed.best_step == undisturbed.best_step
    assert resumed.num_skipped_steps == undisturbed.num_skipped_steps
    assert (resumed.num_steps, resumed.num_input_tokens) == (
        undisturbed.num_steps,
        undisturbed.num_input_tokens,
    )
    assert [record.step for record in rest.steps] == list(range(resumed_from + 1, undisturbed.num_steps + 1))
    assert all(map(is_same_record, rest.steps, whole.steps[resumed_from:]))


def test_a_killed_process_is_gone_on_from(tmp_path: Path) -> None:
    config = make_config(
        {"lora_dropout": 0.3},
        max_steps=40, save_every_steps=1, per_device_batch_size=1, gradient_accumulation_steps=1,
    )  # fmt: skip
    base, kept = random_llama(initializer_range=0.3), tmp_path / "checkpoints"
    whole = train(tmp_path, "whole", base=base, config=config, has_holdout=False)
    settings = tmp_path / "config.json"
    settings.write_text(json.dumps(config.to_json()))
    command = [
        sys.executable, "-m", "training.engine.program", "--base", str(base),
        "--data", str(tmp_path / "train.jsonl"), "--config", str(settings),
        "--output", str(tmp_path / "killed"), "--checkpoints", str(kept),
    ]  # fmt: skip
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        deadline = time.monotonic() + 120
        while not list(kept.glob("step-*")) and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL, (tmp_path / "log").read_text()
    assert not (tmp_path / "killed").exists()
    resumed = train(tmp_path, "resumed", base=base, config=config, checkpoints=kept, has_holdout=False)
    assert 1 <= resumed.resumed_from_step < 40
    assert resumed.final_loss == whole.final_loss
    assert are_same(read_adapter(tmp_path, "whole"), read_adapter(tmp_path, "resumed"))


def test_early_stop_takes_the_best_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By hand: after the fall to 2.0 at step 2 two measurements bring none, so step 4 is the last."""
    measured = iter([3.0, 2.0, 2.5, 2.0])
    monkeypatch.setattr(held_out.HeldOutLoss, "measure", lambda self: next(measured))
    steps = StepList()
    report = RecordingReporter()
    settings: dict[str, Any] = {"max_steps": 9, "eval_every_steps": 1, "early_stopping_patience": 2}
    stopped = train(tmp_path, "stopped", observers=[steps], report=report, **settings)
    assert (stopped.num_steps, stopped.best_step, stopped.stop_reason) == (4, 2, "early-stopping")
    assert (stopped.held_out_loss, stopped.num_planned_steps) == (2.0, 9)
    assert [record.loss for record in steps.held_out] == [3.0, 2.0, 2.5, 2.0]
    assert any("the weights are those of step 2" in message for _, message in report.logs)
    monkeypatch.undo()
    kept = tmp_path / "checkpoints"
    with pytest.raises(Interrupted):
        train(
            tmp_path, "unused", observers=[StepList(interrupt_after=3)], checkpoints=kept,
            **{**settings, "early_stopping_patience": None, "save_every_steps": 2},
        )  # fmt: skip
    at_two = load_file(kept / "step-00000002" / "state.safetensors")
    saved = {name.replace(".default", ""): tensor for name, tensor in at_two.items() if "trainable/" in name}
    assert are_same(
        read_adapter(tmp_path, "stopped"),
        {name.removeprefix("trainable/"): tensor for name, tensor in saved.items()},
    )


def test_time_limit_ends_after_the_step(tmp_path: Path) -> None:
    steps = StepList()
    result = train(tmp_path, observers=[steps], max_minutes=1e-9, max_steps=9)
    assert (result.num_steps, result.stop_reason, len(steps.steps)) == (1, "time-limit", 1)
    assert result.held_out_loss == steps.held_out[0].loss
    assert train(tmp_path, "other", max_minutes=60, max_steps=2).stop_reason is None


def make_loop(settings: OptimisationSettings, precision: Precision = FLOAT32) -> TrainingLoop:
    return TrainingLoop(
        model=make_model(), rows=make_rows(), held_out=make_rows(), pad_token_id=2, settings=settings,
        precision=precision, report=RecordingReporter(),
    )  # fmt: skip


def test_one_by_four_equals_four_by_one() -> None:
    """Gradients weighted by tokens; float32 sums in another order differ by about 1e-7 of the largest."""
    weights = []
    for batch_size in (1, 4):
        settings = OptimisationSettings(
            per_device_batch_size=batch_size, gradient_accumulation_steps=4 // batch_size, max_steps=3,
            learning_rate=1e-3, dtype="float32", gradient_checkpointing=False,
        )  # fmt: skip
        loop = make_loop(settings)
        loop.train()
        weights.append((loop.final_loss, {n: p.detach().clone() for n, p in loop.trainables.items()}))
    (first_loss, first), (second_loss, second) = weights
    assert first_loss == pytest.approx(second_loss, rel=1e-5)
    for name, tensor in first.items():
        # Adam divides by the gradient's own size, so that the smallest ones amplify rounding.
        assert torch.allclose(tensor, second[name], atol=2e-5), name


def test_held_out_measurement_keeps_no_graph_and_draws_nothing() -> None:
    settings = OptimisationSettings(max_steps=1, dtype="float32", gradient_checkpointing=False)
    loop = make_loop(settings)
    has_gradient: list[bool] = []
    loop._held_out._loss = Watched(loop._held_out._loss, has_gradient)
    state = torch.random.get_rng_state()
    first = loop._held_out.measure()
    assert has_gradient == [False]
    assert all(parameter.grad is None for parameter in loop.trainables.values())
    assert loop._held_out.measure() == first
    assert torch.equal(torch.random.get_rng_state(), state)
    assert isinstance(loop._model, AdapterModel)
    assert loop._model.module.training


class Watched:
    """A loss that notes whether its result would keep a graph."""

    def __init__(self, loss: Any, seen: list[bool]) -> None:
        self._loss = loss
        self._seen = seen

    def sum(self, batch: Any) -> torch.Tensor:
        loss: torch.Tensor = self._loss.sum(batch)
        self._seen.append(loss.requires_grad)
        return loss


def test_an_overflow_in_float16_skips_the_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first scale makes float16 gradients overflow; each skipped step halves it."""
    monkeypatch.setattr(loss_scale, "INITIAL_SCALE", 2.0**24)
    steps = StepList()
    result = train(tmp_path, observers=[steps], dtype="float16", max_steps=12, per_device_batch_size=1)
    norms = [record.gradient_norm for record in steps.steps]
    assert norms[0] is None
    assert result.num_skipped_steps == norms.count(None)
    assert 1 <= result.num_skipped_steps < 12
    assert all(math.isfinite(norm) for norm in norms if norm is not None)
    assert all(math.isfinite(record.loss) for record in steps.steps)


def test_float16_trains(tmp_path: Path) -> None:
    steps = StepList()
    result = train(tmp_path, observers=[steps], dtype="float16", max_steps=12, has_holdout=False)
    assert result.dtype == "float16"
    assert result.final_loss < 0.9 * steps.steps[0].loss


def test_a_gradient_that_is_not_finite_stops_without_a_step(tmp_path: Path) -> None:
    loop = make_loop(OptimisationSettings(max_steps=1, dtype="float32", gradient_checkpointing=False))
    before = {name: parameter.detach().clone() for name, parameter in loop.trainables.items()}
    parameter: Any = next(iter(loop.trainables.values()))
    parameter.register_hook(lambda gradient: gradient * math.inf)
    with pytest.raises(NotFinite, match="The gradient norm is not finite in step 1") as caught:
        loop.train()
    assert set(caught.value.example_ids) == {"0", "1", "2", "3"}
    assert are_same(before, {name: parameter.detach() for name, parameter in loop.trainables.items()})


def test_observers_are_told_everything(tmp_path: Path) -> None:
    steps = StepList()
    result = train(tmp_path, observers=[steps], max_steps=5, eval_every_steps=2)
    assert [record.step for record in steps.steps] == [1, 2, 3, 4, 5]
    assert [record.step for record in steps.held_out] == [2, 4, 5]
    assert sum(record.num_tokens for record in steps.steps) == result.num_input_tokens
    assert sum(record.num_trained_tokens for record in steps.steps) == result.num_trained_tokens
    assert all(record.memory_bytes > 0 and record.seconds > 0 for record in steps.steps)
    assert {record.num_steps for record in steps.steps} == {5}


class TwoProcesses(SingleProcess):
    """The other process stands at another step."""

    size = 2

    def sum_numbers(self, *numbers: float) -> tuple[float, ...]:
        step, square = numbers
        return step + 4, square + 16


def test_processes_that_see_different_checkpoints_stop(tmp_path: Path) -> None:
    with pytest.raises(TrainingFailed, match="process 0 would go on from step 0") as caught:
        train(tmp_path, group=TwoProcesses())
    assert caught.value.code == "checkpoints-differ"


def test_checkpoints_of_another_training_are_not_taken_up(tmp_path: Path) -> None:
    kept = tmp_path / "checkpoints"
    settings: dict[str, Any] = {
        "max_steps": 2,
        "save_every_steps": 1,
        "has_holdout": False,
        "per_device_batch_size": 1,
    }
    train(tmp_path, "one", checkpoints=kept, seed=1, **settings)
    assert [path.name for path in kept.iterdir()] == ["step-00000001"]
    other = train(tmp_path, "two", checkpoints=kept, seed=2, **settings)
    assert other.resumed_from_step == 0
    assert train(tmp_path, "three", checkpoints=kept, seed=2, **settings).resumed_from_step == 1


def test_choosing_rows() -> None:
    rows = list(make_rows())
    assert choose_rows(rows, None, seed=0) == rows
    assert choose_rows(rows, 9, seed=0) == rows
    chosen = choose_rows(rows, 2, seed=5)
    assert len(chosen) == 2
    assert chosen == choose_rows(rows, 2, seed=5)
    assert chosen == sorted(chosen, key=rows.index)
    assert len({tuple(row.example_id for row in choose_rows(rows, 2, seed=seed)) for seed in range(30)}) == 6
