from typing import Any

import pytest
import torch
from peft import PeftModel

from tests.training.engine.tiny import make_model, make_rows
from training.engine.answer_loss import AnswerLoss
from training.engine.batches import Batch, collate
from training.engine.lora_model import list_trainables


def gradients(model: PeftModel, loss: AnswerLoss, batches: list[Batch]) -> dict[str, torch.Tensor]:
    model.zero_grad()
    num_trained = sum(batch.num_trained_tokens for batch in batches)
    for batch in batches:
        torch.autograd.backward(loss.sum(batch) / num_trained)
    return {
        name: parameter.grad.clone()
        for name, parameter in list_trainables(model).items()
        if parameter.grad is not None
    }


def test_one_batch_of_four_equals_four_of_one() -> None:
    rows = make_rows()
    model = make_model()
    together = [collate(rows, pad_token_id=2)]
    apart = [collate([row], pad_token_id=2) for row in rows]
    loss = AnswerLoss(model.get_base_model(), together[0])
    assert loss.is_split
    one, four = gradients(model, loss, together), gradients(model, loss, apart)
    assert one.keys() == four.keys()
    for name, gradient in one.items():
        assert torch.allclose(gradient, four[name], rtol=1e-4, atol=1e-6), name


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_answer_loss_equals_the_models_own(attention: str) -> None:
    batch = collate(make_rows(), pad_token_id=2)
    model = make_model(attention=attention)
    loss = AnswerLoss(model.get_base_model(), batch)
    own = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask, labels=batch.labels).loss
    assert float(loss.sum(batch).detach()) / batch.num_trained_tokens == pytest.approx(
        float(own.detach()), rel=1e-5
    )


def test_scaled_logits_fall_back_to_the_whole_model() -> None:
    batch = collate(make_rows(), pad_token_id=2)
    base = make_model().get_base_model()
    original = base.forward

    def capped(**inputs: Any) -> Any:
        output = original(**inputs)
        output.logits = 30 * torch.tanh(
            output.logits / 0.1
        )  # a cap as in Gemma 2, hard enough to matter here
        return output

    base.forward = capped
    loss = AnswerLoss(base, batch)
    assert not loss.is_split
    own = capped(input_ids=batch.input_ids, attention_mask=batch.attention_mask, labels=None).logits
    picked = own[:, :-1].log_softmax(-1).gather(2, batch.labels[:, 1:, None].clamp_min(0))[..., 0]
    expected = -picked[batch.labels[:, 1:] != -100].sum()
    assert float(loss.sum(batch).detach()) == pytest.approx(float(expected.detach()), rel=1e-5)
