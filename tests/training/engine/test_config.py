import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.config import TrainingConfig
from training.engine.config_advice import NAMES_ELSEWHERE
from training.engine.errors import ConfigInvalid, Fault
from training.engine.layer_choice import LayerRange

ROOT = Path(__file__).resolve().parents[3]


def test_defaults_are_those_of_mission_d1() -> None:
    config = TrainingConfig.from_json({})
    assert (config.lora.r, config.lora.lora_alpha, config.lora.lora_dropout) == (16, 32, 0.05)
    assert len(config.lora.target_modules) == 7
    assert (config.method, config.lora.use_dora, config.lora.layers) == ("lora", False, None)
    training = config.training
    assert (training.learning_rate, training.num_epochs, training.warmup_fraction) == (2e-4, 2, 0.03)
    assert (training.per_device_batch_size, training.gradient_accumulation_steps) == (1, 16)
    assert (training.lr_scheduler, training.weight_decay, training.max_grad_norm) == ("cosine", 0.0, 1.0)
    assert (training.max_length_tokens, training.log_every_steps, training.gradient_checkpointing) == (
        2048,
        10,
        True,
    )


def test_round_trip() -> None:
    config = TrainingConfig.from_json(
        {"lora": {"r": 4}, "training": {"max_steps": 3}, "data": {"system_prompt": "Be brief."}}
    )
    assert TrainingConfig.from_json(config.to_json()) == config


@pytest.mark.parametrize(
    ("lora", "expected"),
    [
        ({"r": 8}, (8, 16)),
        ({"lora_alpha": 64}, (32, 64)),
        ({"r": 8, "lora_alpha": 8}, (8, 8)),
        ({}, (16, 32)),
    ],
)
def test_alpha_is_coupled_to_r(lora: dict[str, int], expected: tuple[int, int]) -> None:
    config = TrainingConfig.from_json({"lora": lora})
    assert (config.lora.r, config.lora.lora_alpha) == expected


def test_all_faults_at_once_with_near_misses() -> None:
    raw = {
        "lora": {"r": 0, "lora_alhpa": 32, "bias": "all"},
        "training": {"learning_rate": float("nan"), "num_epochs": True, "seed": -1, "dtype": "float8"},
        "data": [],
        "optimizer": {},
    }
    with pytest.raises(ConfigInvalid) as caught:
        TrainingConfig.from_json(raw)
    assert caught.value.code == "training-config-invalid"
    faults = {fault.where: fault for fault in caught.value.faults}
    assert set(faults) == {
        "lora.r", "lora.lora_alhpa", "lora.bias", "training.learning_rate", "training.num_epochs",
        "training.seed", "training.dtype", "data", "optimizer",
    }  # fmt: skip
    assert faults["lora.lora_alhpa"].remedy == "Did you mean lora_alpha?"


def test_odd_alpha_alone_is_refused() -> None:
    with pytest.raises(ConfigInvalid, match="Give r as well"):
        TrainingConfig.from_json({"lora": {"lora_alpha": 5}})


@pytest.mark.parametrize("method", ["lora", "qlora", "full"])
@pytest.mark.parametrize(
    ("written", "layers"),
    [
        (None, None),
        ("last_two_thirds", "last_two_thirds"),
        ({"first": 2, "last": 5}, LayerRange(first=2, last=5)),
    ],
)
def test_method_and_layers_survive_a_round_trip(method: str, written: Any, layers: Any) -> None:
    config = TrainingConfig.from_json({"method": method, "lora": {"layers": written, "use_dora": True}})
    assert (config.method, config.lora.layers, config.lora.use_dora) == (method, layers, True)
    assert TrainingConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


@given(
    st.integers(1, 1024), st.integers(1, 65_536), st.booleans(), st.floats(1e-9, 1.0), st.integers(1, 10_000)
)
def test_any_valid_configuration_survives_a_round_trip(
    rank: int, alpha: int, use_rslora: bool, rate: float, max_steps: int
) -> None:
    config = TrainingConfig.from_json(
        {
            "lora": {"r": rank, "lora_alpha": alpha, "use_rslora": use_rslora},
            "training": {"learning_rate": rate, "max_steps": max_steps},
        }
    )
    assert TrainingConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    assert config.lora.scaling == pytest.approx(alpha / (math.sqrt(rank) if use_rslora else rank))


def faults_of(raw: dict[str, Any]) -> dict[str, Fault]:
    with pytest.raises(ConfigInvalid) as caught:
        TrainingConfig.from_json(raw)
    return {fault.where: fault for fault in caught.value.faults}


def test_an_unknown_method_and_wrong_layers_are_faults_beside_the_others() -> None:
    faults = faults_of({"method": "dora", "lora": {"layers": {"first": 5, "last": 2}, "r": 0}})
    assert set(faults) == {"method", "lora.layers", "lora.r"}
    assert faults["method"].message == "is 'dora', must be one of lora, qlora, full"
    assert "last_two_thirds" in faults["lora.layers"].message


def test_names_of_other_tools_are_answered_with_the_name_here() -> None:
    # The guide's own skeleton (seed 002, section 4.2).
    faults = faults_of(
        {"training": {"num_train_epochs": 2, "warmup_ratio": 0.03, "bf16": True, "save_steps": 200}}
    )
    assert faults["training.num_train_epochs"].remedy == "It is called num_epochs here."
    assert faults["training.warmup_ratio"].message == "unknown key. It is called warmup_fraction here."
    assert faults["training.bf16"].remedy == "Set dtype to auto or bfloat16."
    assert faults["training.save_steps"].remedy == "It is called save_every_steps here."


def test_every_name_that_is_advised_exists() -> None:
    config = TrainingConfig().to_json()
    assert set(NAMES_ELSEWHERE.values()) <= {*config["lora"], *config["training"]}
    assert not set(NAMES_ELSEWHERE) & {*config["lora"], *config["training"]}


def test_fp16_and_biases_are_refused_with_the_reason() -> None:
    faults = faults_of({"training": {"fp16": True}, "lora": {"bias": "all"}})
    assert "overflows where bfloat16 does not" in faults["training.fp16"].remedy
    assert "refused by the merge" in faults["lora.bias"].remedy


def test_hostile_keys_do_no_harm() -> None:
    faults = faults_of({"\x1b[31m": 1, 3: 2, "lora": {4: 5}})  # type: ignore[dict-item]
    assert set(faults) == {"\\x1b[31m", "3", "lora.4"}


@pytest.mark.parametrize("name", ["training", "harmful_training"])
def test_the_configurations_of_the_examples_are_read_as_before(name: str) -> None:
    raw = json.loads((ROOT / "examples" / "tickets" / f"{name}.json").read_text())
    config = TrainingConfig.from_json(raw)
    # Whatever a configuration does not name takes its default; what it names stays as it is.
    filled = config.to_json()
    assert filled["method"] == "lora"
    for section, settings in raw.items():
        assert {name: filled[section][name] for name in settings} == settings
