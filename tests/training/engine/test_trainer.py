"""Training on a tiny random model: it learns, repeats itself, and stops where it must."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from registry.artifacts.adapter_check import check_adapter
from registry.artifacts.findings import Severity
from tests.fixtures.models import build_random_llama, random_llama
from tests.training.engine.reporters import RecordingReporter
from tests.training.engine.small_runs import make_config, write_data
from training.engine.config import TrainingConfig
from training.engine.errors import ConfigInvalid, DataInvalid, TrainingFailed
from training.engine.merge.merger import run_merge
from training.engine.trainer import run_training
from training.engine.training_result import TrainingResult


def train(
    tmp_path: Path, name: str = "adapter", base: Path | None = None, **training: Any
) -> tuple[TrainingResult, RecordingReporter]:
    report = RecordingReporter()
    data = write_data(tmp_path / "train.jsonl")
    result = run_training(
        base_model=base or random_llama(),
        training_data=data,
        holdout=data,
        config=make_config(**training),
        output=tmp_path / name,
        report=report,
        base_model_name="tiny",
    )
    return result, report


def test_loss_falls_and_the_adapter_loads(tmp_path: Path) -> None:
    base = random_llama(initializer_range=0.3)
    result, report = train(tmp_path, base=base, max_steps=30)
    losses = [values["loss"] for _, values in report.metrics if "loss" in values]
    assert losses[-1] < 0.5 * losses[0]
    assert result.num_steps == 30
    assert result.num_rows == 16
    held_out = [values["held_out_loss"] for _, values in report.metrics if "held_out_loss" in values]
    assert held_out == [result.held_out_loss]
    assert held_out[0] < losses[0]
    logged = next(values for _, values in report.metrics if "loss" in values)
    assert set(logged) == {
        "loss",
        "gradient_norm",
        "tokens_per_second",
        "padding_fraction",
        "learning_rate",
        "memory_bytes",
    }
    assert report.fractions == sorted(report.fractions)
    assert report.fractions[-1] == 1.0
    assert {path.name for path in (tmp_path / "adapter").iterdir()} == {
        "adapter_config.json",
        "adapter_model.safetensors",
    }
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "tiny"
    assert config["target_modules"] == sorted(config["target_modules"])
    # r (d_in + d_out) for each projection of 2 layers: hidden 64, intermediate 128, one key/value head of 32.
    per_layer = 4 * ((64 + 64) * 2 + (64 + 32) * 2 + (64 + 128) * 3)
    assert result.num_trainable_parameters == 2 * per_layer
    PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), tmp_path / "adapter")


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_same_seed_same_bytes(dtype: str, tmp_path: Path) -> None:
    state = torch.random.get_rng_state()
    for name, seed in (("one", 1), ("two", 1), ("three", 2)):
        train(tmp_path, name, max_steps=3, seed=seed, dtype=dtype)
    one, two, three = (
        load_file(tmp_path / name / "adapter_model.safetensors") for name in ("one", "two", "three")
    )
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not all(torch.equal(one[name], three[name]) for name in one)
    assert (tmp_path / "one/adapter_config.json").read_bytes() == (
        tmp_path / "two/adapter_config.json"
    ).read_bytes()
    assert {tensor.dtype for tensor in one.values()} == {torch.float32}
    assert torch.equal(torch.random.get_rng_state(), state)


def test_checkpointing_gives_the_same_adapter(tmp_path: Path) -> None:
    train(tmp_path, "plain", max_steps=3)
    train(tmp_path, "saving", max_steps=3, gradient_checkpointing=True)
    plain, saving = (load_file(tmp_path / name / "adapter_model.safetensors") for name in ("plain", "saving"))
    for name, tensor in plain.items():
        assert torch.allclose(tensor, saving[name], atol=1e-6), name


def test_loss_that_is_not_finite_stops_the_run(tmp_path: Path) -> None:
    base = shutil.copytree(random_llama(), tmp_path / "base")
    tensors = load_file(base / "model.safetensors")
    tensors["model.norm.weight"][0] = torch.nan
    save_file(tensors, base / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(TrainingFailed, match=r"step 1; the examples of it are e\d+, e\d+") as caught:
        train(tmp_path, base=base)
    assert caught.value.code == "loss-not-finite"
    assert not (tmp_path / "adapter").exists()


def test_nothing_left_to_train_on(tmp_path: Path) -> None:
    with pytest.raises(DataInvalid) as caught:
        train(tmp_path, max_length_tokens=8)
    assert caught.value.code == "no-rows-left"


def test_unknown_target_module(tmp_path: Path) -> None:
    config = TrainingConfig.from_json({"lora": {"target_modules": ["q_proj", "query_key_value"]}})
    with pytest.raises(ConfigInvalid, match="query_key_value"):
        run_training(
            base_model=random_llama(),
            training_data=write_data(tmp_path / "train.jsonl"),
            holdout=None,
            config=config,
            output=tmp_path / "adapter",
            report=RecordingReporter(),
        )


def train_with(
    tmp_path: Path, base: Path, lora: dict[str, Any], method: str = "lora", **training: Any
) -> TrainingResult:
    config = make_config(max_steps=3, **training).to_json()
    return run_training(
        base_model=base,
        training_data=write_data(tmp_path / "train.jsonl"),
        holdout=None,
        config=TrainingConfig.from_json({**config, "method": method, "lora": lora}),
        output=tmp_path / "adapter",
        report=RecordingReporter(),
        base_model_name="tiny",
    )


@pytest.mark.parametrize(
    ("lora", "layers"),
    [
        ({"r": 4, "layers": "last_two_thirds"}, [1, 2]),
        ({"r": 4, "layers": {"first": 0, "last": 0}, "use_rslora": True}, [0]),
        ({"r": 4}, None),
    ],
)
def test_an_adapter_on_some_blocks_passes_intake_and_merge(
    lora: dict[str, Any], layers: list[int] | None, tmp_path: Path
) -> None:
    base = build_random_llama(tmp_path / "base", num_layers=3)
    assert train_with(tmp_path, base, lora).method == "lora"
    config = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert config["layers_to_transform"] == layers
    check = check_adapter(tmp_path / "adapter", base)
    assert [item for item in check.findings if item.severity is not Severity.INFO] == []
    merged = run_merge(
        base_model=base, adapter=tmp_path / "adapter", output=tmp_path / "merged", report=RecordingReporter()
    )
    assert merged.num_touched_tensors == 7 * len(layers or range(3))
    before, after = (load_file(folder / "model.safetensors") for folder in (base, tmp_path / "merged"))
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert {int(name.split(".")[2]) for name in changed} == set(layers or range(3))


def test_a_dora_adapter_is_trained_and_merged(tmp_path: Path) -> None:
    train_with(tmp_path, random_llama(), {"r": 4, "use_dora": True}, gradient_checkpointing=True)
    saved = load_file(tmp_path / "adapter" / "adapter_model.safetensors")
    assert any("lora_magnitude_vector" in name for name in saved)
    merged = run_merge(
        base_model=random_llama(),
        adapter=tmp_path / "adapter",
        output=tmp_path / "merged",
        report=RecordingReporter(),
    )
    assert merged.num_touched_tensors == 14


def test_a_method_that_cannot_be_carried_out_ends_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigInvalid, match="Set method to lora"):
        run_training(
            base_model=tmp_path / "no-base",
            training_data=tmp_path / "no-data",
            holdout=None,
            config=TrainingConfig(method="qlora"),
            output=tmp_path / "adapter",
            report=RecordingReporter(),
        )
