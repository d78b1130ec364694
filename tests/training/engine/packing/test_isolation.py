"""Packed rows do not see each other, and the check sees it when they do."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AttentionInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward

from tests.fixtures.models import random_llama
from tests.training.engine.small_runs import StepList, train
from tests.training.engine.tiny import make_model, make_rows
from training.engine.answer_loss import AnswerLoss
from training.engine.batches import Batch, collate
from training.engine.chat import ChatRow
from training.engine.device import Precision
from training.engine.errors import TrainingFailed
from training.engine.lora_model import list_trainables, load_base_model
from training.engine.packing import isolation
from training.engine.packing.collate import collate_packed
from training.engine.packing.isolation import IsolationReport, check_isolation

CPU = torch.device("cpu")
FLOAT32, BFLOAT16 = Precision(CPU, torch.float32), Precision(CPU, torch.bfloat16)


def check(precision: Precision, attention: str, rows: tuple[ChatRow, ...] | None = None) -> IsolationReport:
    base = load_base_model(
        random_llama(initializer_range=0.3), dtype=precision.dtype, attention=attention, device=CPU
    )
    base.train()
    report = check_isolation(base, rows or make_rows(), pad_token_id=2, precision=precision)
    assert base.training
    return report


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
@pytest.mark.parametrize("precision", [FLOAT32, BFLOAT16])
def test_packed_rows_have_the_logits_of_single_rows(precision: Precision, attention: str) -> None:
    report = check(precision, attention)
    assert report.num_rows == 4
    assert report.change_difference == 0
    assert report.alone_difference <= report.tolerance / 2


def test_a_single_row_is_packed_with_itself() -> None:
    assert check(FLOAT32, "eager", make_rows()[:1]).num_rows == 2


@pytest.mark.parametrize("precision", [FLOAT32, BFLOAT16])
def test_a_mask_of_ones_leaks_and_is_refused(precision: Precision, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a mask given, transformers looks for no borders in the positions."""

    def collate_leaking(sequences: Any, *, pad_token_id: int) -> Batch:
        batch = collate_packed(sequences, pad_token_id=pad_token_id)
        return dataclasses.replace(batch, attention_mask=torch.ones_like(batch.input_ids))

    monkeypatch.setattr(isolation, "collate_packed", collate_leaking)
    with pytest.raises(TrainingFailed, match=r"Set training\.packing to false") as caught:
        check(precision, "sdpa")
    assert caught.value.code == "packing-leaks"


def test_an_attention_that_ignores_the_mask_is_refused(tmp_path: Path) -> None:
    """A function of attention that always takes the plain causal mask, as kernels of third parties may."""

    def attend(*args: Any, **options: Any) -> Any:
        query, (module, *_), rest = args[1], args, args[2:4]
        return sdpa_attention_forward(module, query, *rest, None, **options)

    AttentionInterface.register("leaking", attend)
    with pytest.raises(TrainingFailed) as caught:
        check(FLOAT32, "leaking")
    assert caught.value.code == "packing-leaks"


def test_not_a_number_is_never_isolated() -> None:
    values: dict[str, Any] = {"num_rows": 2, "tolerance": 1.0, "change_tolerance": 1.0}
    assert IsolationReport(alone_difference=0.5, change_difference=0.5, **values).is_isolated
    for alone, change in ((torch.nan, 0.0), (0.0, torch.nan)):
        report = IsolationReport(alone_difference=alone, change_difference=change, **values)
        assert not report.is_isolated


def test_the_loss_of_packed_rows_is_that_of_single_rows() -> None:
    rows = make_rows()
    model = make_model()
    apart = [collate([row], pad_token_id=2) for row in rows]
    packed = [collate_packed([rows[:3], rows[3:]], pad_token_id=2)]
    loss = AnswerLoss(model.get_base_model(), apart[0])
    found = []
    for batches in (apart, packed):
        model.zero_grad()
        total = torch.stack([loss.sum(batch) for batch in batches]).sum()
        torch.autograd.backward(total)
        gradients = {name: p.grad.clone() for name, p in list_trainables(model).items() if p.grad is not None}
        found.append((float(total.detach()), gradients))
    (alone, gradients), (together, packed_gradients) = found
    assert together == pytest.approx(alone, rel=1e-6)
    for name, gradient in gradients.items():
        assert torch.allclose(gradient, packed_gradients[name], rtol=1e-4, atol=1e-5), name


def test_a_packed_training_reads_every_row_with_less_padding(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "max_steps": None,
        "num_epochs": 1,
        "per_device_batch_size": 8,
        "gradient_accumulation_steps": 1,
    }
    plain = train(tmp_path, "plain", has_holdout=False, **settings)
    steps = StepList()
    packed = train(
        tmp_path, "packed", has_holdout=False, observers=[steps],
        **{**settings, "packing": True, "max_length_tokens": 256, "per_device_batch_size": 1},
    )  # fmt: skip
    assert packed.num_input_tokens == plain.num_input_tokens
    assert packed.num_trained_tokens == plain.num_trained_tokens
    assert packed.padding_fraction == 0
    assert plain.padding_fraction > 0.02
    # The fewest sequences of 256 tokens that hold them all.
    assert packed.num_steps == -(-packed.num_input_tokens // 256)
