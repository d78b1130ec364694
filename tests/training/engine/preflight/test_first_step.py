from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.engine.preflight.trained import load_base, make_config, read_rows
from training.engine.batches import Batch
from training.engine.config import TrainingConfig
from training.engine.handbook.rows import HandbookRow
from training.engine.lora_model import add_lora
from training.engine.preflight.first_step import FirstStepFindings, examine_first_step
from training.engine.preflight.report import CheckStatus
from training.engine.step_plan import StepPlan
from training.engine.trained_model import AdapterModel, BatchLoss

Spoil = Callable[[AdapterModel], object]


class LossPerBatch:
    """A loss that weights batches alike: the mean of each batch, as if it were its sum."""

    def __init__(self, loss: BatchLoss) -> None:
        self._loss = loss

    def sum(self, batch: Batch) -> torch.Tensor:
        return self._loss.sum(batch) / batch.num_trained_tokens


def examine(
    folder: Path,
    *,
    config: TrainingConfig | None = None,
    before: Spoil = lambda _: None,
    after: Spoil = lambda _: None,
    wrap: Callable[[BatchLoss], BatchLoss] = lambda loss: loss,
) -> FirstStepFindings:
    config = config or make_config()
    rows = read_rows(folder, config)
    base, precision = load_base(rows, config)
    model = AdapterModel(add_lora(base, config.lora, base_model_name="b"))
    before(model)
    _, batches = next(StepPlan(rows.training, config.training, pad_token_id=0).iterate(after_step=0))
    loss = model.prepare(batches[0], precision, gradient_checkpointing=config.training.gradient_checkpointing)
    after(model)
    state = torch.get_rng_state()
    weights = {name: parameter.detach().clone() for name, parameter in model.trainables.items()}
    modes = [module.training for module in model.module.modules()]
    found = examine_first_step(model, wrap(loss), batches, config, precision, pad_token_id=0)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(weights[name], parameter) for name, parameter in model.trainables.items())
    assert all(parameter.grad is None for parameter in model.module.parameters())
    assert [module.training for module in model.module.modules()] == modes
    return found


def statuses(found: FirstStepFindings) -> dict[str, CheckStatus]:
    return {check.code: check.status for check in found.checks}


def test_a_sound_model_passes_and_is_left_as_it_was(tmp_path: Path) -> None:
    found = examine(tmp_path)
    assert set(statuses(found).values()) == {CheckStatus.PASSED}
    result = found.result
    # Hidden 64, feed-forward 128, 2 heads of 32 with 1 for keys; r 8; 2 layers, by hand: q and o 64 + 64, k
    # and v 64 + 32, gate, up and down 64 + 128.
    by_hand = 2 * 8 * (2 * 128 + 2 * 96 + 3 * 192)
    assert result.num_trainable == result.num_expected_trainable == by_hand
    assert result.saved_bytes_with_checkpointing is not None and result.saved_bytes_without is not None
    assert result.saved_bytes_with_checkpointing < result.saved_bytes_without
    assert result.accumulation_difference is not None and result.accumulation_difference < 1e-4
    assert result.num_without_gradient == 0


def test_without_checkpointing_its_check_is_skipped(tmp_path: Path) -> None:
    found = examine(tmp_path, config=make_config(gradient_checkpointing=False))
    assert statuses(found)["checkpointing-active"] is CheckStatus.SKIPPED
    assert found.result.saved_bytes_with_checkpointing is None


def freeze(model: AdapterModel) -> None:
    for name, parameter in model.module.named_parameters():
        if "layers.0" in name and "lora_" in name:
            parameter.requires_grad_(False)
    model.trainables = {
        name: parameter for name, parameter in model.trainables.items() if parameter.requires_grad
    }


def to_float16(model: AdapterModel) -> None:
    for parameter in model.trainables.values():
        parameter.data = parameter.data.to(torch.bfloat16).to(torch.float32)
    first = next(iter(model.trainables))
    model.trainables = {
        **model.trainables, first: torch.nn.Parameter(model.trainables[first].detach().half())
    }  # fmt: skip


def switch_checkpointing_off(model: AdapterModel) -> None:
    model.module.gradient_checkpointing_disable()


def make_flag_idle(model: AdapterModel) -> None:
    """The flag of the model says that checkpointing is on, and its blocks do not do it."""
    for module in model.module.modules():
        if hasattr(module, "layers"):
            for block in module.layers:
                block.gradient_checkpointing = False
            module.gradient_checkpointing = True


def detach_inputs(model: AdapterModel) -> None:
    """What checkpointing with re-entry does where the inputs need no gradient."""
    base: Any = model.module.get_base_model()
    base.model.layers[1].register_forward_pre_hook(
        lambda _, arguments: (arguments[0].detach().requires_grad_(), *arguments[1:])
    )


@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (freeze, "adapter-not-frozen"),
        (freeze, "trainable-count"),
        (to_float16, "trained-in-float32"),
        (switch_checkpointing_off, "checkpointing-active"),
        (make_flag_idle, "checkpointing-active"),
        (detach_inputs, "gradients-arrive"),
    ],
)
def test_what_cannot_be_trained_is_found(tmp_path: Path, spoil: Spoil, code: str) -> None:
    found = examine(tmp_path, after=spoil)
    assert statuses(found)[code] is CheckStatus.FAILED
    assert {check.row for check in found.checks if check.code == code} == {HandbookRow.NOT_TRAINABLE}


def test_batches_that_are_weighted_alike_are_found(tmp_path: Path) -> None:
    found = examine(tmp_path, wrap=LossPerBatch)
    assert statuses(found)["accumulation-exact"] is CheckStatus.FAILED


def test_dropout_does_not_disturb_the_comparison(tmp_path: Path) -> None:
    config = make_config()
    config = replace(config, lora=replace(config.lora, lora_dropout=0.5))
    assert statuses(examine(tmp_path, config=config))["accumulation-exact"] is CheckStatus.PASSED


def test_dora_counts_its_magnitudes(tmp_path: Path) -> None:
    config = make_config()
    config = replace(config, lora=replace(config.lora, use_dora=True))
    found = examine(tmp_path, config=config)
    assert statuses(found)["trainable-count"] is CheckStatus.PASSED
