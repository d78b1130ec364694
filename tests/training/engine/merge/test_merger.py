"""The merge against a float64 reference and against PEFT, and everything that it must refuse."""

import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

from tests.fixtures.adapters import build_random_adapter
from tests.fixtures.models import build_random_llama, random_llama
from tests.training.engine.reporters import RecordingReporter
from training.engine.errors import MergeRefused
from training.engine.merge import shards
from training.engine.merge.logit_check import load_pair, verify_logits
from training.engine.merge.merger import MergeResult, run_merge

PATTERNS = {
    "rank_pattern": {"q_proj": 2, "layers.1.mlp.down_proj": 3},
    "alpha_pattern": {"v_proj": 1, r".*\.0\.mlp\.up_proj": 16},
}
VARIANTS: dict[str, dict[str, Any]] = {
    "plain": {},
    "rslora": {"use_rslora": True},
    "patterns": PATTERNS,
    "patterns-rslora": {**PATTERNS, "use_rslora": True},
    "bf16": {"dtype": torch.bfloat16},
    "some-layers": {"target_modules": ["q_proj", "v_proj"], "layers_to_transform": [1]},
}


def merge(base: Path, adapter: Path, output: Path) -> MergeResult:
    return run_merge(base_model=base, adapter=adapter, output=output, report=RecordingReporter())


def load_all(folder: Path) -> dict[str, torch.Tensor]:
    return {
        name: tensor for path in folder.glob("model*.safetensors") for name, tensor in load_file(path).items()
    }


def reference_float64(base: Path, adapter: Path) -> dict[str, torch.Tensor]:
    """W + s B A in float64, with PEFT's rules written out anew (first matching pattern, both scalings)."""
    config = json.loads((adapter / "adapter_config.json").read_text())
    factors = load_file(adapter / "adapter_model.safetensors")
    result = {name: tensor.double() for name, tensor in load_all(base).items()}
    for name in [name for name in factors if name.endswith("lora_A.weight")]:
        module = name.removeprefix("base_model.model.").removesuffix(".lora_A.weight")
        a, b = factors[name].double(), factors[name.replace("lora_A", "lora_B")].double()
        alphas = [v for k, v in config["alpha_pattern"].items() if re.match(rf"(.*\.)?({k})$", module)]
        alpha = alphas[0] if alphas else config["lora_alpha"]
        scaling = alpha / (math.sqrt(len(a)) if config["use_rslora"] else len(a))
        result[f"{module}.weight"] += scaling * (b @ a)
    return result


def ulp_distance(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Distance in representable bf16 numbers."""

    def order(tensor: torch.Tensor) -> torch.Tensor:
        bits = tensor.view(torch.int16).int()
        return torch.where(bits < 0, -(bits & 0x7FFF), bits)

    return (order(left) - order(right)).abs()


@pytest.mark.parametrize("variant", VARIANTS)
def test_within_one_ulp_of_float64(variant: str, tmp_path: Path) -> None:
    base = random_llama()
    adapter = build_random_adapter(base, tmp_path / "adapter", **VARIANTS[variant])
    result = merge(base, adapter, tmp_path / "merged")
    merged, before, expected = load_all(tmp_path / "merged"), load_all(base), reference_float64(base, adapter)
    assert merged.keys() == before.keys()
    num_touched = 0
    for name, tensor in merged.items():
        assert tensor.dtype == before[name].dtype
        if torch.equal(expected[name], before[name].double()):
            assert torch.equal(tensor, before[name])
            continue
        num_touched += 1
        distance = ulp_distance(tensor, expected[name].to(torch.bfloat16))
        assert int(distance.max()) <= 1
        # Ties between the float32 and the float64 sum are rare.
        assert float((distance > 0).float().mean()) < 1e-3
    assert num_touched == result.num_touched_tensors == result.num_adapter_tensors / 2
    assert result.num_untouched_tensors == len(merged) - num_touched


@pytest.mark.parametrize("variant", ["plain", "patterns-rslora"])
def test_agrees_with_peft_in_float32(variant: str, tmp_path: Path) -> None:
    base = random_llama()
    adapter = build_random_adapter(base, tmp_path / "adapter", **VARIANTS[variant])
    merge(base, adapter, tmp_path / "merged")
    model = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    reference = PeftModel.from_pretrained(model, adapter).merge_and_unload().to(torch.bfloat16).state_dict()
    for name, tensor in load_all(tmp_path / "merged").items():
        assert int(ulp_distance(tensor, reference[name]).max()) <= 1, name


def test_conv1d_weights_are_transposed(tmp_path: Path) -> None:
    base, adapter = tmp_path / "base", tmp_path / "adapter"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = GPT2LMHeadModel(GPT2Config(vocab_size=64, n_embd=32, n_layer=1, n_head=2, n_positions=32))
    model.to(torch.bfloat16).save_pretrained(base)
    AutoTokenizer.from_pretrained(random_llama()).save_pretrained(base)
    # c_proj of the attention is square, so only the class of the layer can tell the orientation.
    build_random_adapter(base, adapter, target_modules=["c_attn", "c_proj"], fan_in_fan_out=True)
    merge(base, adapter, tmp_path / "merged")
    loaded = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    reference = PeftModel.from_pretrained(loaded, adapter).merge_and_unload().to(torch.bfloat16).state_dict()
    for name, tensor in load_all(tmp_path / "merged").items():
        assert int(ulp_distance(tensor, reference[name]).max()) <= 1, name


def test_shards_index_and_companions(tmp_path: Path) -> None:
    base = build_random_llama(tmp_path / "base", max_shard_size="3MB", tie_word_embeddings=False)
    index_path = base / "model.safetensors.index.json"
    index = json.loads(index_path.read_text())
    assert len(set(index["weight_map"].values())) > 1
    index["metadata"]["total_size"] = 7  # a count, as some tools write it
    index_path.write_text(json.dumps(index))
    for name in ("training_args.bin", "pytorch_model.bin", "modeling_x.py", "LICENSE", "README.md"):
        (base / name).write_text("{}")
    adapter = build_random_adapter(
        build_random_llama(tmp_path / "clean", tie_word_embeddings=False), tmp_path / "adapter"
    )
    merge(base, adapter, tmp_path / "merged")
    names = {path.name for path in (tmp_path / "merged").iterdir()}
    assert {
        "config.json",
        "generation_config.json",
        "tokenizer.json",
        "chat_template.jinja",
        "LICENSE",
    } <= names
    assert not names & {"training_args.bin", "pytorch_model.bin", "modeling_x.py"}
    written = json.loads((tmp_path / "merged" / "model.safetensors.index.json").read_text())
    assert written["weight_map"] == index["weight_map"]
    assert written["metadata"]["total_size"] == sum(
        t.numel() * t.element_size() for t in load_all(base).values()
    )
    AutoModelForCausalLM.from_pretrained(tmp_path / "merged")


def test_same_inputs_same_bytes_and_small_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = random_llama()
    adapter = build_random_adapter(base, tmp_path / "adapter")
    merge(base, adapter, tmp_path / "one")
    merge(base, adapter, tmp_path / "two")
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()
    monkeypatch.setattr(shards, "BLOCK_BYTES", 1000)
    merge(base, adapter, tmp_path / "blocks")
    for name, tensor in load_all(tmp_path / "one").items():
        assert int(ulp_distance(tensor, load_all(tmp_path / "blocks")[name]).max()) <= 1


def test_logits_of_the_merged_model(tmp_path: Path) -> None:
    base = random_llama()
    adapter = build_random_adapter(base, tmp_path / "adapter", scale=0.2)
    merge(base, adapter, tmp_path / "merged")
    prompts = ["Hello there, how are you?", "{}"]
    report = verify_logits(
        load_pair(base_model=base, adapter=adapter, merged=tmp_path / "merged"), prompts=prompts
    )
    assert report.num_prompts == 2
    assert report.num_top1_differ == 0
    assert report.mean_kl_divergence < 1e-3 * report.base_mean_kl_divergence
    wrong = verify_logits(load_pair(base_model=base, adapter=adapter, merged=base), prompts=prompts)
    assert wrong.mean_kl_divergence == pytest.approx(wrong.base_mean_kl_divergence, rel=1e-3)


@pytest.mark.parametrize(
    ("field", "value", "code"),
    [
        ("use_dora", True, "tensor-missing"),  # the magnitudes
        ("modules_to_save", ["lm_head"], "tensor-missing"),
        ("trainable_token_indices", [3], "tensor-missing"),
        ("kasa_config", {"beta": 1}, "adapter-kasa"),
        ("layer_replication", [[0, 1]], "adapter-layer-replication"),
        ("init_lora_weights", "pissa", "adapter-init-pissa"),
        ("peft_type", "IA3", "adapter-not-lora"),
        ("r", 8, "rank-mismatch"),
    ],
)
def test_refused_by_name(field: str, value: object, code: str, tmp_path: Path) -> None:
    base = random_llama()
    adapter = build_random_adapter(base, tmp_path / "adapter")
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), field: value}))
    with pytest.raises(MergeRefused) as caught:
        merge(base, adapter, tmp_path / "merged")
    assert caught.value.code == code
    assert not (tmp_path / "merged").exists()


def test_faulty_tensors_are_refused_and_nothing_is_left(tmp_path: Path) -> None:
    base = random_llama()
    original = build_random_adapter(base, tmp_path / "adapter")
    tensors = load_file(original / "adapter_model.safetensors")
    first_a = next(name for name in tensors if "lora_A" in name)
    first_b = first_a.replace("lora_A", "lora_B")

    def infinite(tensor: torch.Tensor) -> torch.Tensor:
        return torch.full_like(tensor, math.inf)

    cases = {
        "tensor-pair-incomplete": {k: v for k, v in tensors.items() if k != first_b},
        "tensor-unexpected": {**tensors, "base_model.model.model.layers.0.extra.tensor": torch.ones(2)},
        "module-unknown": {k.replace("layers.1", "layers.7"): v for k, v in tensors.items()},
        "adapter-not-finite": {**tensors, first_a: infinite(tensors[first_a])},
        "adapter-tensor-without-effect": {**tensors, first_b: torch.zeros_like(tensors[first_b])},
        "merge-not-finite": {k: v * 1e30 for k, v in tensors.items()},
        "adapter-empty": {},
    }
    for code, changed in cases.items():
        adapter = tmp_path / code
        shutil.copytree(original, adapter)
        save_file(changed, adapter / "adapter_model.safetensors")
        with pytest.raises(MergeRefused) as caught:
            merge(base, adapter, tmp_path / "merged")
        assert caught.value.code == code
        assert {path.name for path in tmp_path.iterdir()} <= {"adapter", *cases}


def test_truncated_weights_are_refused(tmp_path: Path) -> None:
    base = random_llama()
    adapter = build_random_adapter(base, tmp_path / "adapter")
    path = adapter / "adapter_model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(MergeRefused) as caught:
        merge(base, adapter, tmp_path / "merged")
    assert caught.value.code == "safetensors-truncated"


def test_interrupted_merge_leaves_nothing(tmp_path: Path) -> None:
    base = random_llama()
    adapter = build_random_adapter(base, tmp_path / "adapter")

    class Interrupting(RecordingReporter):
        def progress(self, fraction: float, message: str) -> None:
            if fraction > 0.5:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_merge(base_model=base, adapter=adapter, output=tmp_path / "merged", report=Interrupting())
    assert [path.name for path in tmp_path.iterdir()] == ["adapter"]


def test_read_only_links_as_inputs(tmp_path: Path) -> None:
    base, adapter = random_llama(), build_random_adapter(random_llama(), tmp_path / "adapter")
    linked = tmp_path / "linked"
    linked.mkdir()
    for path in base.iterdir():
        (linked / path.name).symlink_to(path)
    before = {path.name: path.read_bytes() for path in base.iterdir()}
    merge(linked, adapter, tmp_path / "merged")
    assert not any(path.is_symlink() for path in (tmp_path / "merged").iterdir())
    assert {path.name: path.read_bytes() for path in base.iterdir()} == before
