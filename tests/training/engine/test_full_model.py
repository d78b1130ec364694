"""Training all weights: a complete model comes out."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from tests.fixtures.models import build_random_llama, random_llama
from tests.training.engine.small_runs import Interrupted, StepList, are_same, make_config, train
from training.engine.config import TrainingConfig
from training.engine.device import Precision
from training.engine.errors import TrainingFailed
from training.engine.full_model import FullModel, check_saved_model
from training.engine.lora_model import load_base_model

FLOAT32 = Precision(torch.device("cpu"), torch.float32)


def make_full_config(**training: Any) -> TrainingConfig:
    return make_config(method="full", **{"learning_rate": 1e-3, "max_steps": 4, **training})


def read_weights(folder: Path) -> dict[str, torch.Tensor]:
    tensors: dict[str, torch.Tensor] = {}
    for file in sorted(folder.glob("*.safetensors")):
        tensors |= load_file(file)
    return tensors


@pytest.mark.parametrize("is_tied", [True, False])
def test_a_complete_model_comes_out(is_tied: bool, tmp_path: Path) -> None:
    base = build_random_llama(tmp_path / "base", tie_word_embeddings=is_tied, initializer_range=0.3)
    (base / "generation_config.json").write_text('{"temperature": 0.25}\n')
    steps = StepList()
    result = train(tmp_path, "model", base=base, config=make_full_config(), observers=[steps])
    assert (result.method, result.num_steps) == ("full", 4)
    assert steps.steps[-1].loss < steps.steps[0].loss
    before, after = read_weights(base), read_weights(tmp_path / "model")
    assert before.keys() == after.keys()
    assert {tensor.dtype for tensor in after.values()} == {torch.bfloat16}
    assert result.num_trainable_parameters == sum(tensor.numel() for tensor in before.values())
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    assert {"model.embed_tokens.weight", "model.layers.1.mlp.down_proj.weight"} <= changed
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert {path.name for path in base.iterdir()} == names
    for name in ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        assert (tmp_path / "model" / name).read_bytes() == (base / name).read_bytes()
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "model")
    ids = torch.tensor([[5, 6, 7]])
    own = AutoModelForCausalLM.from_pretrained(base)
    assert not torch.equal(loaded(ids).logits, own(ids).logits)
    assert AutoTokenizer.from_pretrained(tmp_path / "model").chat_template


def test_an_interrupted_full_training_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    config = make_full_config(
        dtype="bfloat16", gradient_checkpointing=True, max_steps=3, save_every_steps=1,
        per_device_batch_size=1, early_stopping_patience=2, eval_every_steps=2,
    )  # fmt: skip
    whole = train(tmp_path, "whole", config=config)
    with pytest.raises(Interrupted):
        train(
            tmp_path,
            "none",
            config=config,
            observers=[StepList(interrupt_after=2)],
            checkpoints=tmp_path / "c",
        )
    resumed = train(tmp_path, "resumed", config=config, checkpoints=tmp_path / "c")
    assert (resumed.resumed_from_step, resumed.final_loss) == (1, whole.final_loss)
    assert are_same(read_weights(tmp_path / "whole"), read_weights(tmp_path / "resumed"))


def test_a_model_that_equals_the_base_was_not_trained(tmp_path: Path) -> None:
    """As it happens when all changes are smaller than the rounding of the stored format."""
    base = random_llama()
    with pytest.raises(TrainingFailed, match="no stored weight differs from the base") as caught:
        check_saved_model(
            load_file(base / "model.safetensors"), shutil.copytree(base, tmp_path / "model"), base_model=base
        )
    assert caught.value.code == "model-not-trained"


def test_saved_files_are_compared(tmp_path: Path) -> None:
    base = random_llama()
    folder = shutil.copytree(base, tmp_path / "model")
    weights = load_file(folder / "model.safetensors")
    name = "model.norm.weight"
    stored = {**weights, name: weights[name] + 1}
    with pytest.raises(TrainingFailed, match=r"in 1 tensors: model\.norm\.weight") as caught:
        check_saved_model(stored, folder, base_model=base)
    assert caught.value.code == "saved-model-differs"
    stored[name][0] = torch.nan
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(TrainingFailed):
        check_saved_model(stored, folder, base_model=base)
    del stored[name]
    save_file(stored, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(TrainingFailed, match=r"model\.norm\.weight"):
        check_saved_model(stored, folder, base_model=base)


def test_a_matrix_without_a_gradient_is_named() -> None:
    base = load_base_model(random_llama(), dtype=torch.float32, attention="eager", device=torch.device("cpu"))
    model = FullModel(base, base_model=None)
    for parameter in model.trainables.values():
        parameter.grad = torch.ones_like(parameter)
    model.check_first_gradients()
    model.trainables["model.layers.1.self_attn.q_proj.weight"].grad = None
    with pytest.raises(TrainingFailed, match=r"layers\.1\.self_attn\.q_proj") as caught:
        model.check_first_gradients()
    assert caught.value.code == "weights-without-gradient"


def test_the_template_stays(tmp_path: Path) -> None:
    train(tmp_path, config=make_full_config(max_steps=1))
    base = random_llama(initializer_range=0.3)
    assert json.loads((tmp_path / "adapter" / "tokenizer_config.json").read_text()) == json.loads(
        (base / "tokenizer_config.json").read_text()
    )
