"""Every variant of LoRA against peft in float64: the merged tensors but for ties, and the logits."""

import json
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.training.engine.merge.variants import (
    build_adapter,
    build_base,
    load,
    load_tensors,
    logits,
    put_adapter,
    read_json,
    reference,
    ulp_distance,
)
from tests.training.engine.reporters import RecordingReporter
from training.engine.errors import MergeRefused
from training.engine.merge.merger import MergeResult, run_merge

LLAMA = ["q_proj", "v_proj", "down_proj"]
GPT2 = ["c_attn", "c_proj", "c_fc"]
BOTH = ["embed_tokens", "lm_head"]
EXPERTS = ["mlp.experts.gate_up_proj", "mlp.experts.down_proj"]
TIED: dict[str, Any] = {"tie_word_embeddings": True}
APART: dict[str, Any] = {"tie_word_embeddings": False}


@dataclass(frozen=True)
class Case:
    """One adapter: the model it is made for, peft's settings, and what becomes of the embeddings.

    `has_reference` is False where peft's own merge is not the truth, because it writes into the tied matrix
    (twice for ensure_weight_tying) or because loading fills resized rows anew; the logits decide there.
    """

    name: str
    kind: str
    settings: dict[str, Any]
    base: dict[str, Any] = field(default_factory=dict)
    resize: int | None = None
    is_untied: bool = False
    has_reference: bool = True


def lora(**settings: Any) -> dict[str, Any]:
    return {"target_modules": LLAMA, **settings}


def gpt2(**settings: Any) -> dict[str, Any]:
    return {"target_modules": GPT2, "fan_in_fan_out": True, **settings}


CASES = [
    *(Case(f"plain-{kind}", kind, lora()) for kind in ("qwen2", "qwen3", "mistral", "gemma", "gemma2")),
    *(
        Case(f"dora-{kind}", kind, lora(use_dora=True))
        for kind in ("llama", "qwen2", "qwen3", "mistral", "gemma")
    ),
    Case("plain-gpt2", "gpt2", gpt2()),
    Case("dora-gpt2", "gpt2", gpt2(use_dora=True)),
    Case(
        "dora-rslora-patterns",
        "llama",
        lora(use_dora=True, use_rslora=True, rank_pattern={"v_proj": 2}, alpha_pattern={"down_proj": 3}),
    ),
    Case("dora-bf16", "llama", lora(use_dora=True, dtype=torch.bfloat16)),
    Case("bias-all", "llama", lora(bias="all")),
    Case("bias-lora-only", "qwen2", {"target_modules": ["q_proj", "v_proj"], "bias": "lora_only"}),
    Case("bias-all-gpt2", "gpt2", gpt2(bias="all")),
    Case("lora-bias", "llama", lora(lora_bias=True)),
    Case("lora-bias-gpt2", "gpt2", gpt2(lora_bias=True)),
    Case("lora-bias-and-bias-all", "llama", lora(lora_bias=True, bias="all")),
    Case("norms-saved", "llama", lora(modules_to_save=["input_layernorm"])),
    Case("block-saved", "llama", {"target_modules": ["q_proj"], "modules_to_save": ["mlp"]}),
    Case("parameter-2d", "llama", {"target_modules": [], "target_parameters": ["q_proj.weight"]}),
    Case("parameter-2d-gpt2", "gpt2", {"target_modules": [], "target_parameters": ["c_proj.weight"]}),
    Case("tokens-gpt2", "gpt2", gpt2(trainable_token_indices=[3, 1])),
    Case(
        "dora-all-gpt2", "gpt2", gpt2(target_modules=[*GPT2, "wte", "lm_head"], use_dora=True), is_untied=True
    ),
]
for tied, base in (("apart", APART), ("tied", TIED)):
    is_tied = base is TIED
    CASES += [
        Case(f"head-{tied}", "llama", lora(target_modules=[*LLAMA, "lm_head"]), base, None, is_tied),
        Case(f"head-gemma-{tied}", "gemma", lora(target_modules=["lm_head"]), base, None, is_tied),
        Case(
            f"head-alone-{tied}",
            "llama",
            lora(target_modules=["lm_head"], save_embedding_layers=False),
            base,
            None,
            is_tied,
        ),
        Case(f"embedding-{tied}", "llama", lora(target_modules=["embed_tokens"]), base, None, is_tied),
        Case(f"embedding-gemma-{tied}", "gemma", lora(target_modules=["embed_tokens"]), base, None, is_tied),
        Case(f"both-{tied}", "llama", lora(target_modules=[*LLAMA, *BOTH]), base, None, is_tied),
        Case(f"both-dora-{tied}", "llama", lora(target_modules=BOTH, use_dora=True), base, None, is_tied),
        Case(f"both-saved-{tied}", "llama", lora(modules_to_save=BOTH), base, None, is_tied),
        Case(f"embedding-saved-{tied}", "llama", lora(modules_to_save=["embed_tokens"]), base, None, is_tied),
        Case(f"head-saved-{tied}", "llama", lora(modules_to_save=["lm_head"]), base, None, is_tied),
        Case(
            f"saved-and-tied-{tied}",
            "llama",
            lora(modules_to_save=["embed_tokens"], ensure_weight_tying=True),
            base,
            None,
            is_tied,
        ),
        Case(f"both-saved-resized-{tied}", "llama", lora(modules_to_save=BOTH), base, 56, is_tied),
        Case(
            f"embedding-saved-resized-{tied}",
            "llama",
            lora(modules_to_save=["embed_tokens"]),
            base,
            56,
            is_tied,
        ),
        Case(f"head-saved-resized-{tied}", "llama", lora(modules_to_save=["lm_head"]), base, 56, is_tied),
        Case(f"resized-{tied}", "llama", lora(), base, 56),
        Case(f"resized-smaller-{tied}", "llama", lora(), base, 40),
        Case(f"tokens-{tied}", "llama", lora(trainable_token_indices=[3, 1, 40]), base),
        Case(
            f"tokens-of-both-{tied}",
            "llama",
            lora(trainable_token_indices={"embed_tokens": [3, 1], "lm_head": [3, 1]}),
            base,
        ),
        Case(
            f"other-tokens-of-both-{tied}",
            "llama",
            lora(trainable_token_indices={"embed_tokens": [3, 1], "lm_head": [3, 7]}),
            base,
            None,
            is_tied,
        ),
        Case(f"tokens-resized-{tied}", "llama", lora(trainable_token_indices=[50, 3]), base, 56),
    ]
CASES += [
    Case(
        "lora-kept-tied",
        "llama",
        lora(target_modules=["embed_tokens"], ensure_weight_tying=True),
        TIED,
        None,
        True,
        has_reference=False,
    ),
    Case(
        "embedding-resized-tied",
        "llama",
        lora(target_modules=["embed_tokens"]),
        TIED,
        56,
        True,
        has_reference=False,
    ),
]
for moe in ("mixtral", "qwen3_moe", "gpt_oss"):
    CASES += [
        Case(f"experts-{moe}", moe, {"target_modules": [], "target_parameters": EXPERTS}),
        Case(f"one-parameter-{moe}", moe, {"target_modules": ["q_proj"], "target_parameters": EXPERTS[1:]}),
        Case(
            f"experts-patterns-{moe}",
            moe,
            {
                "target_modules": ["q_proj"],
                "target_parameters": EXPERTS[:1],
                "use_rslora": True,
                "rank_pattern": {"experts.gate_up_proj": 2},
                "alpha_pattern": {"experts.gate_up_proj": 5},
            },
        ),
    ]
CASES += [
    Case("router", "mixtral", {"target_modules": ["q_proj"], "target_parameters": ["mlp.gate.weight"]}),
    Case("names-of-transformers-4", "mixtral", {"target_modules": ["q_proj", "w1", "w2", "w3"]}),
    Case(
        "square-experts",
        "mixtral",
        {"target_modules": [], "target_parameters": EXPERTS[:1]},
        {"intermediate_size": 16},
    ),
]


@pytest.fixture(autouse=True)
def quiet() -> Any:
    """What peft warns of is what is tested here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def merge(base: Path, adapter: Path, output: Path) -> MergeResult:
    return run_merge(base_model=base, adapter=adapter, output=output, report=RecordingReporter())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_bf16_tensors_are_pefts_in_float64(case: Case, tmp_path: Path) -> None:
    base = build_base(tmp_path / "base", case.kind, **case.base)
    adapter = build_adapter(base, tmp_path / "adapter", resize=case.resize, **case.settings)
    result = merge(base, adapter, tmp_path / "merged")
    assert result.is_untied is case.is_untied
    assert result.vocab_size == case.resize
    merged = load_tensors(tmp_path / "merged")
    config = read_json(tmp_path / "merged" / "config.json")
    assert config["vocab_size"] == len(load(tmp_path / "merged").get_input_embeddings().weight)
    assert ("lm_head.weight" in merged) is not config.get("tie_word_embeddings", case.kind == "gpt2")
    if not case.has_reference:
        return
    expected = reference(base, adapter, tmp_path / "expected", resize=case.resize, is_untied=case.is_untied)
    assert merged.keys() == expected.keys()
    num_off = 0
    for name, tensor in merged.items():
        distance = ulp_distance(tensor, expected[name].to(torch.bfloat16))
        assert int(distance.max()) <= 1, name
        num_off += int((distance > 0).sum())
    # A float32 sum may fall on the other side of a tie between two bf16 numbers; at most 3 of 20,000 seen.
    assert num_off <= 5


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_logits_are_those_of_base_and_adapter(case: Case, tmp_path: Path) -> None:
    base = build_base(tmp_path / "base", case.kind, dtype=torch.float32, **case.base)
    adapter = build_adapter(base, tmp_path / "adapter", resize=case.resize, **case.settings)
    merge(base, adapter, tmp_path / "merged")
    expected = logits(put_adapter(load(base), adapter, case.resize))
    actual = logits(load(tmp_path / "merged"))
    # The merged weights are rounded to float32 (2^-24) once; the largest seen is 7e-7.
    assert float((actual - expected).abs().max() / expected.abs().max()) < 5e-6


@pytest.mark.parametrize("init", ["pissa", "olora"])
def test_a_converted_adapter_is_a_plain_lora_and_an_unconverted_one_is_refused(
    init: str, tmp_path: Path
) -> None:
    base = build_base(tmp_path / "base", "llama", dtype=torch.float32)
    settings = {"r": 4, "lora_alpha": 6, "target_modules": LLAMA, "task_type": "CAUSAL_LM"}
    adapted = peft.get_peft_model(
        load(base, torch.float32),
        peft.LoraConfig(init_lora_weights=init, **settings),
    )
    adapted.peft_config["default"].init_lora_weights = True
    adapted.save_pretrained(tmp_path / "initial")
    adapted.peft_config["default"].init_lora_weights = init
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(3)
        for parameter in adapted.parameters():
            if parameter.requires_grad:
                parameter.add_(torch.randn_like(parameter) * 0.1)
    expected = logits(adapted)
    adapted.save_pretrained(tmp_path / "raw")
    adapted.save_pretrained(
        tmp_path / "converted", path_initial_model_for_weight_conversion=str(tmp_path / "initial")
    )
    with pytest.raises(MergeRefused) as caught:
        merge(base, tmp_path / "raw", tmp_path / "merged")
    assert caught.value.code == f"adapter-init-{init}"
    assert "path_initial_model_for_weight_conversion" in caught.value.faults[0].remedy
    merge(base, tmp_path / "converted", tmp_path / "merged")
    actual = logits(load(tmp_path / "merged", torch.float32))
    assert float((actual - expected).abs().max() / expected.abs().max()) < 1e-4


@pytest.mark.parametrize(("kind", "width"), [("mixtral", 56), ("qwen3_moe", 24), ("mixtral", 16)])
def test_the_expert_layout_of_peft_before_0_19(kind: str, width: int, tmp_path: Path) -> None:
    """Then A was [E r, p] and B [q, r E] with delta_e = (B_e A_e)^T; width 16 makes the parameter square."""
    size = "intermediate_size" if kind == "mixtral" else "moe_intermediate_size"
    base = build_base(tmp_path / "base", kind, **dict[str, Any]({size: width}))
    settings: dict[str, Any] = {"target_modules": [], "target_parameters": EXPERTS[:1]}
    new = build_adapter(base, tmp_path / "new", **settings)
    old = tmp_path / "old"
    old.mkdir()
    config = read_json(new / "adapter_config.json")
    (old / "adapter_config.json").write_text(json.dumps({**config, "peft_version": "0.18.1"}))
    tensors = {}
    for name, a in load_file(new / "adapter_model.safetensors").items():
        if name.endswith("lora_A.weight"):
            b = load_file(new / "adapter_model.safetensors")[name.replace("lora_A", "lora_B")]
            a_experts = a.reshape(4, 4, -1)  # 4 experts of rank 4
            b_experts = b.reshape(len(b), 4, 4).permute(2, 0, 1)
            tensors[name] = b_experts.transpose(1, 2).reshape(16, -1).contiguous()
            tensors[name.replace("lora_A", "lora_B")] = (
                a_experts.transpose(1, 2).permute(1, 2, 0).reshape(-1, 16).contiguous()
            )
    save_file(tensors, old / "adapter_model.safetensors")
    merge(base, new, tmp_path / "from-new")
    merge(base, old, tmp_path / "from-old")
    for name, tensor in load_tensors(tmp_path / "from-new").items():
        assert int(ulp_distance(tensor, load_tensors(tmp_path / "from-old")[name]).max()) <= 1, name


def test_a_square_parameter_of_an_unreleased_peft_is_refused(tmp_path: Path) -> None:
    base = build_base(tmp_path / "base", "mixtral", intermediate_size=16)
    adapter = build_adapter(base, tmp_path / "adapter", target_modules=[], target_parameters=EXPERTS[:1])
    path = adapter / "adapter_config.json"
    path.write_text(json.dumps({**read_json(path), "peft_version": "0.19.0.dev0"}))
    with pytest.raises(MergeRefused) as caught:
        merge(base, adapter, tmp_path / "merged")
    assert caught.value.code == "adapter-target-parameters"


def test_an_expert_without_training_stays_as_it_was(tmp_path: Path) -> None:
    base = build_base(tmp_path / "base", "mixtral")
    adapter = build_adapter(base, tmp_path / "adapter", target_modules=[], target_parameters=EXPERTS[:1])
    path = adapter / "adapter_model.safetensors"
    tensors = load_file(path)
    for name, tensor in tensors.items():
        if name.endswith("lora_B.weight"):
            tensor[:, 2::4] = 0  # expert 2 of 4: the expert's number runs fastest
    save_file(tensors, path)
    merge(base, adapter, tmp_path / "merged")
    before, after = load_tensors(base), load_tensors(tmp_path / "merged")
    changed = {name.split(".experts.")[1][0] for name in before if not torch.equal(before[name], after[name])}
    assert changed == {"0", "1", "3"}
    save_file({name: tensor * ("lora_A" in name) for name, tensor in tensors.items()}, path)
    with pytest.raises(MergeRefused) as caught:
        merge(base, adapter, tmp_path / "silent")
    assert caught.value.code == "adapter-tensor-without-effect"
