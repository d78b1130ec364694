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

from tests.fixtures.models import random_llama
from tests.training.engine.reporters import RecordingReporter
from training.engine.answer_loss import AnswerLoss
from training.engine.batches import Batch, collate
from training.engine.chat import ChatRow, render_rows
from training.engine.config import LoraSettings, TrainingConfig
from training.engine.data.jsonl import ChatMessage, Example
from training.engine.errors import ConfigInvalid, DataInvalid, TrainingFailed
from training.engine.lora_model import (
    add_lora,
    check_first_gradients,
    list_trainables,
    load_base_model,
    load_tokenizer,
)
from training.engine.trainer import TrainingResult, run_training

ANSWERS = ("red", "green apples", "blue sky at noon", "one two three four five")


def write_data(path: Path, count: int = 16) -> Path:
    rows = [
        {
            "id": f"e{i}",
            "messages": [
                {"role": "user", "content": f"What is number {i % 4}?" + " please" * (i % 5)},
                {"role": "assistant", "content": ANSWERS[i % 4]},
            ],
        }
        for i in range(count)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def make_config(**training: Any) -> TrainingConfig:
    defaults = {
        "learning_rate": 1e-2, "max_steps": 12, "per_device_batch_size": 4, "gradient_accumulation_steps": 2,
        "gradient_checkpointing": False, "log_every_steps": 4, "dtype": "float32",
    }  # fmt: skip
    return TrainingConfig.from_json({"lora": {"r": 4}, "training": {**defaults, **training}})


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


def make_rows() -> tuple[ChatRow, ...]:
    examples = [
        Example(
            example_id=str(i),
            messages=(ChatMessage("user", f"Say {i}" + " again" * i), ChatMessage("assistant", answer)),
        )
        for i, answer in enumerate(ANSWERS)
    ]
    tokenizer = load_tokenizer(random_llama())
    return render_rows(tokenizer, examples, system_prompt=None, max_length_tokens=200).rows


def make_model(*, attention: str = "eager", dropout: float = 0.0) -> PeftModel:
    base = load_base_model(
        random_llama(), dtype=torch.float32, attention=attention, device=torch.device("cpu")
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = add_lora(base, LoraSettings(r=4, lora_alpha=8, lora_dropout=dropout), base_model_name="tiny")
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.data.normal_(0.0, 0.02)
    return model


def gradients(model: PeftModel, loss: AnswerLoss, batches: list[Batch]) -> dict[str, torch.Tensor]:
    model.zero_grad()
    num_trained = sum(batch.num_trained_tokens for batch in batches)
    for batch in batches:
        (loss.sum(batch) / num_trained).backward()
    return {
        name: parameter.grad.clone()
        for name, parameter in list_trainables(model).items()
        if parameter.grad is not None
    }


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
    assert set(logged) == {"loss", "gradient_norm", "tokens_per_second", "padding_fraction", "learning_rate"}
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
