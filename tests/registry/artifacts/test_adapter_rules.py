from typing import Any

import pytest

from registry.artifacts.adapter_config import parse_adapter_config
from registry.artifacts.adapter_rules import check_config
from registry.artifacts.findings import Severity
from tests.registry.artifacts.builders import lora_config


def errors_of(
    *, architectures: tuple[str, ...] = (), is_tied: bool | None = None, **changes: Any
) -> list[str]:
    findings = check_config(
        parse_adapter_config(lora_config(**changes)), architectures=architectures, is_tied=is_tied
    )
    return [finding.code for finding in findings if finding.severity is Severity.ERROR]


def warnings_of(**changes: Any) -> list[str]:
    findings = check_config(parse_adapter_config(lora_config(**changes)))
    return [finding.code for finding in findings if finding.severity is Severity.WARNING]


def test_a_plain_lora_has_only_the_hint() -> None:
    findings = check_config(parse_adapter_config(lora_config()))
    assert [finding.code for finding in findings] == ["adapter-base-hint"]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"layer_replication": [[0, 4], [2, 5]]}, "adapter-layer-replication"),
        ({"kasa_config": {"beta": 0.1}}, "adapter-kasa"),
        ({"enable_lora": [True, False, True]}, "adapter-enable-lora"),
        ({"alora_invocation_tokens": [5]}, "adapter-alora"),
        ({"arrow_config": {"top_k": 2}}, "adapter-arrow"),
        ({"use_bdlora": {"nblocks": 2}}, "adapter-bdlora"),
        ({"use_qalora": True}, "adapter-qalora"),
        ({"monteclora_config": {"num_samples": 4}}, "adapter-monteclora"),
        ({"megatron_config": {"hidden_size": 8}}, "adapter-megatron"),
        ({"init_lora_weights": "pissa"}, "adapter-init-pissa"),
        ({"init_lora_weights": "pissa_niter_16"}, "adapter-init-pissa"),
        ({"init_lora_weights": "PiSSA"}, "adapter-init-pissa"),
        ({"init_lora_weights": "olora"}, "adapter-init-olora"),
        ({"init_lora_weights": "corda"}, "adapter-init-corda"),
        ({"init_lora_weights": "loftq"}, "adapter-init-loftq"),
        ({"init_lora_weights": "lora_ga"}, "adapter-init-lora-ga"),
        ({"init_lora_weights": "something_new"}, "adapter-init-unknown"),
        ({"task_type": "SEQ_CLS"}, "adapter-not-causal-lm"),
        ({"task_type": "SEQ_2_SEQ_LM"}, "adapter-not-causal-lm"),
        ({"peft_type": "IA3"}, "adapter-not-lora"),
        ({"target_modules": "(a+)+b"}, "adapter-pattern-invalid"),
        ({"rank_pattern": {"(": 4}}, "adapter-pattern-invalid"),
        ({"lora_alpha": 0}, "adapter-alpha-zero"),
        ({"auto_mapping": {"base_model_class": "PeftModel"}}, "adapter-double-wrapped"),
        ({"use_dora": "yes"}, "adapter-config-field-invalid"),
        ({"bias": "some"}, "adapter-config-field-invalid"),
        ({"trainable_token_indices": [1, 1]}, "adapter-config-field-invalid"),
        ({"trainable_token_indices": {"embed_tokens": [-1]}}, "adapter-config-field-invalid"),
        ({"modules_to_save": [1]}, "adapter-config-field-invalid"),
    ],
)
def test_each_refusal_has_its_name(changes: dict[str, Any], code: str) -> None:
    assert errors_of(**changes) == [code]


VARIANTS = [
    ({"use_dora": True}, "adapter-dora"),
    ({"bias": "all"}, "adapter-bias"),
    ({"bias": "lora_only"}, "adapter-bias"),
    ({"lora_bias": True}, "adapter-lora-bias"),
    ({"modules_to_save": ["lm_head"]}, "adapter-modules-to-save"),
    ({"trainable_token_indices": [1]}, "adapter-trainable-tokens"),
    ({"trainable_token_indices": {"embed_tokens": [1]}}, "adapter-trainable-tokens"),
    ({"target_parameters": ["experts.gate_up_proj"]}, "adapter-target-parameters"),
]


@pytest.mark.parametrize(("changes", "code"), VARIANTS)
def test_variants_that_vllm_serves_merged_only(changes: dict[str, Any], code: str) -> None:
    config = parse_adapter_config(lora_config(**changes))
    assert errors_of(**changes) == ["vllm-cannot-serve-adapter-form"]
    merged_only = check_config(config, is_adapter_form_needed=False)
    assert {finding.code for finding in merged_only} == {code, "adapter-base-hint"}
    assert all(finding.severity is Severity.INFO for finding in merged_only)


def test_the_model_class_decides_about_embeddings_in_adapter_form() -> None:
    targets: dict[str, Any] = {"target_modules": ["q_proj", "model.embed_tokens"]}
    assert errors_of(architectures=("LlamaForCausalLM",), **targets) == []
    assert errors_of(architectures=("Qwen2ForCausalLM",), **targets) == ["vllm-cannot-serve-adapter-form"]


@pytest.mark.parametrize(
    "changes",
    [
        {"use_dora": True, "lora_bias": True},
        {"target_parameters": ["q_proj.weight"], "use_dora": True},
        {"target_parameters": ["q_proj.weight"], "lora_bias": True},
        {"target_parameters": ["q_proj.weight"], "fan_in_fan_out": True},
    ],
)
def test_combinations_that_peft_refuses(changes: dict[str, Any]) -> None:
    assert "adapter-combination-invalid" in errors_of(**changes)


@pytest.mark.parametrize("init", [True, False, "gaussian", "eva", "orthogonal", "mica"])
def test_initialisations_that_leave_a_plain_lora(init: Any) -> None:
    assert errors_of(init_lora_weights=init) == []


def test_several_refusals_come_together() -> None:
    assert set(errors_of(use_dora=True, use_qalora=True, kasa_config={"beta": 1}, r=0)) == {
        "vllm-cannot-serve-adapter-form",
        "adapter-qalora",
        "adapter-kasa",
        "adapter-config-field-invalid",
    }


def test_the_output_layer_depends_on_the_base() -> None:
    assert errors_of(target_modules=["lm_head"], is_tied=True) == []
    tied = check_config(parse_adapter_config(lora_config(target_modules=["lm_head"])), is_tied=True)
    assert "adapter-lm-head-tied" in {finding.code for finding in tied}
    assert errors_of(target_modules=["lm_head"], is_tied=False) == []
    assert warnings_of(target_modules=["lm_head"]) == ["adapter-lm-head"]


def test_a_missing_task_type_is_judged_by_the_wrapped_class() -> None:
    whisper = {"base_model_class": "WhisperForConditionalGeneration"}
    assert errors_of(task_type=None, auto_mapping=whisper) == ["adapter-not-causal-lm"]
    gemma = {"base_model_class": "Gemma3ForConditionalGeneration"}
    assert (
        errors_of(task_type=None, auto_mapping=gemma, architectures=("Gemma3ForConditionalGeneration",)) == []
    )
    assert errors_of(task_type=None, auto_mapping={"base_model_class": "LlamaForCausalLM"}) == []
    assert warnings_of(task_type=None) == ["adapter-task-unknown"]


def test_missing_targets() -> None:
    raw = lora_config()
    del raw["target_modules"]
    codes = [finding.code for finding in check_config(parse_adapter_config(raw))]
    assert "adapter-targets-missing" in codes
    assert warnings_of(target_modules=None) == ["adapter-targets-unknown"]


def test_warnings() -> None:
    assert warnings_of(new_field={"a": 1}) == ["adapter-config-unknown-field"]
    assert warnings_of(new_field=None) == []
    assert warnings_of(lora_alpha=-8) == ["adapter-alpha-negative"]
    assert warnings_of(base_model_name_or_path="unsloth/llama-3-8b-bnb-4bit") == [
        "adapter-base-hint-quantised"
    ]
