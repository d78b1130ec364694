import functools
from collections import Counter
from typing import Any

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM, PreTrainedConfig

from tests.training.engine.memory.test_model_shape import LLAMA2_7B
from training.engine.memory.doubts import CHECKED_MODEL_TYPES, MAX_DIFFERENCE_FRACTION, find_doubts
from training.engine.memory.model_shape import read_model_shape

SPARSE = ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe")


def doubts_of(config: dict[str, Any], num_stored: int | None = None) -> list[str]:
    found = find_doubts(config, read_model_shape(config), num_stored_parameters=num_stored)
    return [doubt.code for doubt in found]


@functools.cache
def model_of(model_type: str) -> tuple[PreTrainedConfig, int, Counter[str]]:
    """The configuration, the parameters and the linear modules of a small model that transformers builds."""
    sparse = {"moe_intermediate_size": 48, "num_experts": 4, "num_local_experts": 4, "num_experts_per_tok": 2}
    config = CONFIG_MAPPING[model_type](
        hidden_size=96,
        intermediate_size=48 if model_type in ("mixtral", "olmoe") else 160,
        num_hidden_layers=4,
        num_attention_heads=6,
        num_key_value_heads=2,
        head_dim=16,
        vocab_size=500,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
        **(sparse if model_type in SPARSE else {}),
    )
    with torch.device("meta"):
        model: Any = AutoModelForCausalLM.from_config(config)
    linear = Counter(
        name.rpartition(".")[2] for name, it in model.named_modules() if isinstance(it, torch.nn.Linear)
    )
    return config, sum(it.numel() for it in model.parameters()), linear


@pytest.mark.parametrize("model_type", sorted(CHECKED_MODEL_TYPES))
def test_the_count_is_that_of_the_model_that_transformers_builds(model_type: str) -> None:
    config, num_parameters, linear = model_of(model_type)
    # With the keys that a config.json may leave out because they are the defaults, and without them.
    for written in (config.to_dict(), config.to_diff_dict()):
        shape = read_model_shape(written)
        assert shape.num_parameters == pytest.approx(num_parameters, rel=MAX_DIFFERENCE_FRACTION / 4)
        assert doubts_of(written, num_parameters) == (["experts-counted"] if model_type in SPARSE else [])
    if model_type not in SPARSE:
        counted = {item.name: item.num_modules for item in shape.list_linear()}
        assert counted == {name: number for name, number in linear.items() if name != "lm_head"}


@pytest.mark.parametrize("model_type", ["gpt_neox", "starcoder2", "phi", "nemotron"])
def test_other_architectures_are_doubted(model_type: str) -> None:
    config = {**LLAMA2_7B, "model_type": model_type}
    assert doubts_of(config) == ["shape-not-checked"]
    message = find_doubts(config, read_model_shape(config))[0].message
    assert f"'{model_type}'" in message


def test_hostile_names_of_architectures_are_shown_harmlessly() -> None:
    values: tuple[Any, ...] = ("\u202eamall", ["llama"], {}, None, 7)
    for value in values:
        config = {**LLAMA2_7B, "model_type": value}
        doubt = find_doubts(config, read_model_shape(config))[0]
        assert doubt.code == "shape-not-checked"
        assert "\u202e" not in doubt.message


def test_weights_that_hold_another_number_are_told() -> None:
    counted = read_model_shape(LLAMA2_7B).num_parameters
    assert doubts_of(LLAMA2_7B, counted) == []
    assert doubts_of(LLAMA2_7B, round(counted * 1.01)) == []
    assert doubts_of(LLAMA2_7B, round(counted * 1.05)) == ["parameters-differ"]
    assert doubts_of(LLAMA2_7B, round(counted * 0.95)) == ["parameters-differ"]


def test_of_a_composed_model_only_the_text_part_is_counted() -> None:
    assert doubts_of({"model_type": "llava", "text_config": LLAMA2_7B}) == ["text-part-alone"]
