import pytest
import torch

from tests.fixtures.models import random_llama
from tests.training.engine.tiny import make_model
from training.engine.config import LoraSettings
from training.engine.errors import TrainingFailed
from training.engine.lora_model import add_lora, check_first_gradients, list_trainables, load_base_model


def test_trainables_are_float32_on_a_bf16_base() -> None:
    base = load_base_model(random_llama(), dtype=torch.bfloat16, attention="sdpa", device=torch.device("cpu"))
    model = add_lora(base, LoraSettings(), base_model_name="tiny")
    assert {parameter.dtype for parameter in list_trainables(model).values()} == {torch.float32}


def test_untrained_matrices_are_named() -> None:
    model = make_model()
    trainables = list_trainables(model)
    for parameter in trainables.values():
        parameter.grad = torch.ones_like(parameter)
    check_first_gradients(trainables)
    silent = next(name for name in trainables if "lora_B" in name)
    trainables[silent].grad = None
    with pytest.raises(TrainingFailed, match=r"layers\.0") as caught:
        check_first_gradients(trainables)
    assert caught.value.code == "lora-without-gradient"
