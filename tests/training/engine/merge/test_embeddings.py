"""What the merge does with embeddings in the files: index, configuration, refusals, damage."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from registry.artifacts.base_model import read_base_model
from tests.training.engine.merge.variants import (
    build_adapter,
    build_base,
    load,
    load_tensors,
    logits,
    put_adapter,
    read_json,
    ulp_distance,
)
from tests.training.engine.reporters import RecordingReporter
from training.engine.errors import MergeRefused
from training.engine.merge import shards
from training.engine.merge.merger import MergeResult, run_merge

TIED: dict[str, Any] = {"tie_word_embeddings": True}
WEIGHTS = "adapter_model.safetensors"
Tensors = dict[str, torch.Tensor]


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """What peft warns of is what is tested here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def merge(base: Path, adapter: Path, output: Path) -> MergeResult:
    return run_merge(base_model=base, adapter=adapter, output=output, report=RecordingReporter())


def refusal(base: Path, adapter: Path, output: Path) -> str:
    with pytest.raises(MergeRefused) as caught:
        merge(base, adapter, output)
    assert not output.exists()
    return caught.value.code


def shard_base(folder: Path) -> None:
    """Split model.safetensors into three files with an index whose total_size is wrong."""
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    weight_map = {}
    for number in range(3):
        part = {name: t for at, (name, t) in enumerate(sorted(tensors.items())) if at % 3 == number}
        name = f"model-{number + 1:05}-of-00003.safetensors"
        save_file(part, folder / name, metadata={"format": "pt"})
        weight_map.update(dict.fromkeys(part, name))
    index = {"metadata": {"total_size": 5, "made_by": "x"}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


@pytest.mark.parametrize("resize", [None, 56])
def test_the_index_of_an_untied_and_resized_model(resize: int | None, tmp_path: Path) -> None:
    base = build_base(tmp_path / "base", "llama", dtype=torch.float32, **TIED)
    adapter = build_adapter(
        base, tmp_path / "adapter", target_modules=["q_proj"], modules_to_save=["lm_head"], resize=resize
    )
    whole = load_tensors(base)
    shard_base(base)
    merge(base, adapter, tmp_path / "merged")
    index = read_json(tmp_path / "merged" / "model.safetensors.index.json")
    tensors = load_tensors(tmp_path / "merged")
    assert index["weight_map"].keys() == tensors.keys() == {*whole, "lm_head.weight"}
    assert index["weight_map"]["lm_head.weight"] == index["weight_map"]["model.embed_tokens.weight"]
    assert index["metadata"] == {
        "total_size": sum(t.numel() * t.element_size() for t in tensors.values()),
        "made_by": "x",
    }
    summary = read_base_model(tmp_path / "merged")  # which compares the index with the files
    assert (summary.is_tied, summary.vocab_size) == (False, resize or 48)
    provenance = read_json(tmp_path / "merged" / "assay_merge.json")
    assert provenance["embeddings"] == {"is_untied": True, "vocab_size": resize}
    expected = logits(put_adapter(load(base), adapter, resize))
    assert torch.allclose(logits(load(tmp_path / "merged")), expected, rtol=1e-5, atol=1e-5)


def test_a_stored_copy_of_a_tied_head_in_another_file(tmp_path: Path) -> None:
    base = build_base(tmp_path / "base", "llama", **TIED)
    tensors = load_file(base / "model.safetensors")
    save_file(
        {**tensors, "lm_head.weight": tensors["model.embed_tokens.weight"].clone()},
        base / "model.safetensors",
    )
    shard_base(base)
    names = read_json(base / "model.safetensors.index.json")["weight_map"]
    assert names["lm_head.weight"] != names["model.embed_tokens.weight"]
    cases: tuple[tuple[str, dict[str, Any]], ...] = (
        ("kept", {"trainable_token_indices": [3, 1]}),
        ("apart", {"target_modules": ["q_proj", "embed_tokens"]}),
    )
    for name, settings in cases:
        adapter = build_adapter(
            base, tmp_path / f"adapter-{name}", **{"target_modules": ["q_proj"], **settings}
        )
        result = merge(base, adapter, tmp_path / name)
        merged = load_tensors(tmp_path / name)
        assert result.is_untied is (name == "apart")
        is_equal = torch.equal(merged["lm_head.weight"], merged["model.embed_tokens.weight"])
        assert is_equal is (name == "kept")
        assert not torch.equal(merged["model.embed_tokens.weight"], tensors["model.embed_tokens.weight"])


def test_small_blocks_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = build_base(tmp_path / "base", "gpt2")
    adapter = build_adapter(
        base,
        tmp_path / "adapter",
        target_modules=["c_attn", "c_proj", "wte"],
        use_dora=True,
        bias="all",
        fan_in_fan_out=True,
    )
    merge(base, adapter, tmp_path / "one")
    monkeypatch.setattr(shards, "BLOCK_BYTES", 500)
    merge(base, adapter, tmp_path / "blocks")
    for name, tensor in load_tensors(tmp_path / "one").items():
        assert int(ulp_distance(tensor, load_tensors(tmp_path / "blocks")[name]).max()) <= 1, name


@pytest.mark.parametrize("settings", [{"target_modules": ["lm_head"]}, {"modules_to_save": ["embed_tokens"]}])
def test_models_whose_head_vllm_never_reads_are_not_untied(settings: dict[str, Any], tmp_path: Path) -> None:
    base = build_base(tmp_path / "base", "gemma2")
    adapter = build_adapter(base, tmp_path / "adapter", **{"target_modules": ["q_proj"], **settings})
    assert refusal(base, adapter, tmp_path / "merged") == "untied-head-unsupported"


def test_a_checkpoint_of_the_bare_decoder(tmp_path: Path) -> None:
    """As "gpt2" is published: without the prefix "transformer."."""
    base = build_base(tmp_path / "base", "gpt2", dtype=torch.float32)
    settings: dict[str, Any] = {"fan_in_fan_out": True, "bias": "all"}
    plain = build_adapter(base, tmp_path / "plain", target_modules=["c_attn", "c_proj"], **settings)
    untying = build_adapter(base, tmp_path / "untying", target_modules=["c_attn", "lm_head"], **settings)
    path = base / "model.safetensors"
    bare = {name.removeprefix("transformer."): t for name, t in load_file(path).items()}
    save_file(bare, path, metadata={"format": "pt"})
    merge(base, plain, tmp_path / "merged")
    assert load_tensors(tmp_path / "merged").keys() == bare.keys()
    expected = logits(put_adapter(load(base), plain))
    assert torch.allclose(logits(load(tmp_path / "merged")), expected, rtol=1e-5, atol=1e-5)
    assert refusal(base, untying, tmp_path / "untied") == "untied-head-unsupported"


def test_two_tensors_of_one_matrix_must_be_equal(tmp_path: Path) -> None:
    base = build_base(tmp_path / "base", "llama", **TIED)
    adapter = build_adapter(base, tmp_path / "adapter", target_modules=["q_proj"], resize=56)
    tensors = load_file(adapter / WEIGHTS)
    tensors["base_model.model.lm_head.weight"][3, 3] += 1
    save_file(tensors, adapter / WEIGHTS)
    assert refusal(base, adapter, tmp_path / "merged") == "tied-weights-differ"


def set_first(value: float) -> Callable[[torch.Tensor], None]:
    def change(tensor: torch.Tensor) -> None:
        tensor.view(-1)[0] = value

    return change


@pytest.mark.parametrize(
    ("settings", "ending", "value", "code"),
    [
        ({"use_dora": True}, "lora_magnitude_vector", float("nan"), "adapter-not-finite"),
        ({"bias": "all"}, "q_proj.base_layer.bias", float("inf"), "adapter-not-finite"),
        ({"lora_bias": True}, "lora_B.bias", float("nan"), "adapter-not-finite"),
        ({"modules_to_save": ["lm_head"]}, "lm_head.weight", float("-inf"), "adapter-not-finite"),
        ({"trainable_token_indices": [1]}, "trainable_tokens_delta", float("nan"), "adapter-not-finite"),
        ({"target_modules": ["embed_tokens"]}, "lora_embedding_A", float("nan"), "adapter-not-finite"),
        ({"modules_to_save": ["lm_head"]}, "lm_head.weight", 3.4e38 * 1.0, "merge-not-finite"),
        ({"lora_bias": True}, "lora_B.bias", 3.4e38, "merge-not-finite"),
    ],
)
def test_values_that_are_not_finite(
    settings: dict[str, Any], ending: str, value: float, code: str, tmp_path: Path
) -> None:
    base = build_base(tmp_path / "base", "llama")
    adapter = build_adapter(base, tmp_path / "adapter", **{"target_modules": ["q_proj"], **settings})
    tensors = load_file(adapter / WEIGHTS)
    set_first(value)(next(tensor for name, tensor in tensors.items() if name.endswith(ending)))
    save_file(tensors, adapter / WEIGHTS)
    assert refusal(base, adapter, tmp_path / "merged") == code
