"""The check's answers against peft itself: adapters that peft saved, on tiny models."""

import re
from pathlib import Path
from typing import Any

import peft
import pytest
import transformers

from registry.artifacts.adapter_check import check_adapter
from tests.registry.artifacts.builders import write_json


def save_base(folder: Path, model: Any) -> Path:
    model.save_pretrained(folder)
    write_json(folder / "tokenizer_config.json", {"chat_template": "x"})
    write_json(folder / "tokenizer.json", {})
    return folder


def tiny_llama(**changes: Any) -> Any:
    config = transformers.LlamaConfig(
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        vocab_size=32,
        **changes,
    )
    return transformers.LlamaForCausalLM(config)


def save_adapter(
    folder: Path, model: Any, *, save_embedding_layers: bool | str = "auto", **config: Any
) -> Any:
    wrapped = peft.get_peft_model(model, peft.LoraConfig(task_type="CAUSAL_LM", **config))
    wrapped.save_pretrained(folder, save_embedding_layers=save_embedding_layers)
    return wrapped


@pytest.mark.parametrize(
    "config",
    [
        {"r": 4, "target_modules": ["q_proj", "v_proj"]},
        {"r": 4, "target_modules": "all-linear"},
        {"r": 4, "lora_alpha": 16, "use_rslora": True, "target_modules": r".*\.(q_proj|down_proj)"},
        {
            "r": 8,
            "target_modules": ["q_proj", "k_proj"],
            "rank_pattern": {"k_proj": 2},
            "alpha_pattern": {"q_proj": 3},
        },
        {"r": 4, "target_modules": ["q_proj"], "layers_to_transform": [1]},
        {"r": 4, "target_modules": ["q_proj", "up_proj"], "exclude_modules": r".*layers\.0.*"},
        {"r": 4, "target_modules": ["q_proj"], "init_lora_weights": "gaussian"},
        {"r": 4, "target_modules": ["q_proj", "lm_head"], "save_embedding_layers": False},
    ],
)
def test_modules_ranks_and_scalings_are_pefts(tmp_path: Path, config: dict[str, Any]) -> None:
    base = save_base(tmp_path / "base", tiny_llama())
    wrapped = save_adapter(tmp_path / "adapter", tiny_llama(), **config)
    check = check_adapter(tmp_path / "adapter", base)
    assert check.ok, check.findings
    assert "modules-missing" not in {finding.code for finding in check.findings}
    expected = {
        name.removeprefix("base_model.model."): (layer.r["default"], layer.scaling["default"])
        for name, layer in wrapped.named_modules()
        if hasattr(layer, "lora_A")
    }
    assert {module.module: (module.rank, module.scaling) for module in check.modules} == expected


def test_gpt2_is_transposed_as_in_peft(tmp_path: Path) -> None:
    model_config = transformers.GPT2Config(n_embd=16, n_layer=1, n_head=2, vocab_size=32, n_positions=16)
    base = save_base(tmp_path / "base", transformers.GPT2LMHeadModel(model_config))
    wrapped = save_adapter(
        tmp_path / "adapter",
        transformers.GPT2LMHeadModel(model_config),
        r=4,
        target_modules=["c_attn", "c_proj"],
    )
    check = check_adapter(tmp_path / "adapter", base)
    assert check.ok, check.findings
    layers = {name.removeprefix("base_model.model."): layer for name, layer in wrapped.named_modules()}
    assert check.modules
    for module in check.modules:
        layer = layers[module.module]
        assert module.is_transposed is layer.fan_in_fan_out is True
        assert tuple(layer.get_delta_weight("default").shape) == tuple(layer.base_layer.weight.shape)


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"init_lora_weights": "pissa"}, "adapter-init-pissa"),
        ({"init_lora_weights": "olora"}, "adapter-init-olora"),
        ({"layer_replication": [[0, 2], [1, 2]]}, "adapter-layer-replication"),
        ({"alora_invocation_tokens": [5]}, "adapter-alora"),
    ],
)
def test_variants_are_refused_by_name(tmp_path: Path, config: dict[str, Any], code: str) -> None:
    base = save_base(tmp_path / "base", tiny_llama())
    save_adapter(tmp_path / "adapter", tiny_llama(), r=4, target_modules=["q_proj"], **config)
    check = check_adapter(tmp_path / "adapter", base)
    errors = {finding.code for finding in check.findings if finding.severity == "error"}
    assert code in errors
    assert all(re.fullmatch(r"[a-z0-9-]+", finding.code) for finding in check.findings)


@pytest.mark.parametrize(
    "config",
    [
        {"use_dora": True},
        {"bias": "all"},
        {"bias": "lora_only"},
        {"lora_bias": True},
        {"modules_to_save": ["lm_head"]},
        {"modules_to_save": ["embed_tokens", "lm_head"]},
        {"trainable_token_indices": [1, 2]},
        {"target_parameters": ["o_proj.weight"]},
    ],
)
def test_variants_that_are_merged_and_served_merged_only(tmp_path: Path, config: dict[str, Any]) -> None:
    base = save_base(tmp_path / "base", tiny_llama(attention_bias=True))
    model = tiny_llama(attention_bias=True)
    save_adapter(tmp_path / "adapter", model, r=4, target_modules=["q_proj"], **config)
    merged_only = check_adapter(tmp_path / "adapter", base, is_adapter_form_needed=False)
    assert merged_only.ok, merged_only.findings
    assert merged_only.summary is not None
    assert merged_only.summary.forms == ("merged",)
    for form, is_needed in (("merged", True), ("adapter", True), ("adapter", False)):
        check = check_adapter(tmp_path / "adapter", base, form, is_adapter_form_needed=is_needed)
        errors = {finding.code for finding in check.findings if finding.severity == "error"}
        assert errors == {"vllm-cannot-serve-adapter-form"}


def test_an_adapter_of_another_shape(tmp_path: Path) -> None:
    base = save_base(tmp_path / "base", tiny_llama())
    wider = transformers.LlamaForCausalLM(
        transformers.LlamaConfig(
            hidden_size=32, intermediate_size=24, num_hidden_layers=3, num_attention_heads=2, vocab_size=32
        )
    )
    save_adapter(tmp_path / "adapter", wider, r=4, target_modules=["q_proj"])
    errors = {
        finding.code
        for finding in check_adapter(tmp_path / "adapter", base).findings
        if finding.severity == "error"
    }
    assert errors == {"shape-mismatch", "module-unknown"}


@pytest.mark.parametrize("is_tied", [False, True])
@pytest.mark.parametrize("targets", [["q_proj", "embed_tokens"], ["q_proj", "lm_head"]])
def test_embedding_targets(tmp_path: Path, targets: list[str], is_tied: bool) -> None:
    base = save_base(tmp_path / "base", tiny_llama(tie_word_embeddings=is_tied))
    for name, save_layers, forms in (("bare", False, ("merged", "adapter")), ("whole", "auto", ("merged",))):
        model = tiny_llama(tie_word_embeddings=is_tied)
        save_adapter(tmp_path / name, model, r=4, target_modules=targets, save_embedding_layers=save_layers)
        check = check_adapter(tmp_path / name, base, is_adapter_form_needed=False)
        assert check.ok, check.findings
        assert check.summary is not None
        assert check.summary.forms == forms
        assert check.changes.embedding.is_untied is is_tied


def test_a_whole_matrix_that_peft_adds_by_itself(tmp_path: Path) -> None:
    base = save_base(tmp_path / "base", tiny_llama())
    save_adapter(tmp_path / "adapter", tiny_llama(), r=4, target_modules=["q_proj", "lm_head"])
    errors = [
        finding
        for finding in check_adapter(tmp_path / "adapter", base).findings
        if finding.severity == "error"
    ]
    assert [finding.code for finding in errors] == ["vllm-cannot-serve-adapter-form"]
    assert errors[0].remedy is not None
    assert "save_embedding_layers=False" in errors[0].remedy
