import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tests.fixtures.models import build_random_llama, random_llama
from tests.training.engine.tiny import make_model
from training.engine.config import LoraSettings
from training.engine.errors import ConfigInvalid, TrainingFailed
from training.engine.layer_choice import LayerChoice, LayerRange
from training.engine.lora_model import (
    add_lora,
    check_first_gradients,
    list_trainables,
    load_base_model,
    make_4bit_config,
    require_trainable,
)

CPU, CUDA = torch.device("cpu"), torch.device("cuda")


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


@pytest.mark.parametrize(
    ("layers", "expected"),
    [
        (None, {0, 1, 2}),
        ("last_two_thirds", {1, 2}),
        (LayerRange(first=0, last=1), {0, 1}),
        (LayerRange(first=2, last=2), {2}),
    ],
)
def test_only_the_chosen_blocks_are_adapted(layers: LayerChoice, expected: set[int], tmp_path: Path) -> None:
    folder = build_random_llama(tmp_path / "base", num_layers=3)
    base = load_base_model(folder, dtype=torch.float32, attention="eager", device=CPU)
    model = add_lora(base, LoraSettings(r=2, lora_alpha=4, layers=layers), base_model_name="tiny")
    names = list_trainables(model)
    assert {int(name.split(".layers.")[1].split(".")[0]) for name in names} == expected
    # A and B of seven projections.
    assert len(names) == 14 * len(expected)


def test_blocks_beyond_the_model_are_refused() -> None:
    base = load_base_model(random_llama(), dtype=torch.float32, attention="eager", device=CPU)
    with pytest.raises(ConfigInvalid) as caught:
        add_lora(base, LoraSettings(layers=LayerRange(first=1, last=2)), base_model_name="tiny")
    assert caught.value.code == "layers-out-of-range"


def test_dora_trains_magnitudes_as_well() -> None:
    base = load_base_model(random_llama(), dtype=torch.bfloat16, attention="eager", device=CPU)
    model = add_lora(base, LoraSettings(r=2, lora_alpha=4, use_dora=True), base_model_name="tiny")
    trainables = list_trainables(model)
    magnitudes = [name for name in trainables if "lora_magnitude_vector" in name]
    assert len(magnitudes) == 14  # seven projections of two blocks
    assert {parameter.dtype for parameter in trainables.values()} == {torch.float32}


@pytest.mark.parametrize(
    ("method", "device", "code"),
    [
        ("qlora", CPU, "qlora-needs-cuda"),
        ("qlora", CUDA, "qlora-needs-bitsandbytes"),
    ],
)
def test_methods_that_cannot_be_carried_out(
    method: str, device: torch.device, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigInvalid) as caught:
        require_trainable(method, device)
    assert caught.value.code == code


def test_methods_that_can_be_carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    require_trainable("lora", CPU)
    require_trainable("lora", CUDA)
    require_trainable("full", CPU)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: SimpleNamespace(name=name))
    require_trainable("qlora", CUDA)


def test_a_4_bit_base_is_placed_while_it_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The options that reach transformers; loading itself needs CUDA and bitsandbytes."""
    calls: list[dict[str, Any]] = []

    def from_pretrained(folder: object, **options: Any) -> Any:
        calls.append(options)
        return SimpleNamespace(config=SimpleNamespace(use_cache=True))  # it has no .to()

    monkeypatch.setattr("training.engine.lora_model.AutoModelForCausalLM.from_pretrained", from_pretrained)
    model = load_base_model(
        random_llama(), dtype=torch.bfloat16, attention="sdpa", device=CUDA, has_4bit_weights=True
    )
    assert model.config.use_cache is False
    assert calls[0]["device_map"] == {"": CUDA}
    quantisation = calls[0]["quantization_config"]
    assert quantisation.to_dict() == make_4bit_config(torch.bfloat16).to_dict()
    assert quantisation.load_in_4bit
    assert quantisation.bnb_4bit_quant_type == "nf4"
    assert quantisation.bnb_4bit_use_double_quant
    assert quantisation.bnb_4bit_compute_dtype == torch.bfloat16
