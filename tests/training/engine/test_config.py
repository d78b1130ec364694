import pytest

from training.engine.config import TrainingConfig
from training.engine.errors import ConfigInvalid


def test_defaults_are_those_of_mission_d1() -> None:
    config = TrainingConfig.from_json({})
    assert (config.lora.r, config.lora.lora_alpha, config.lora.lora_dropout) == (16, 32, 0.05)
    assert len(config.lora.target_modules) == 7
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
        "training": {"learning_rate": float("nan"), "num_epochs": True, "seed": -1, "dtype": "float16"},
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
