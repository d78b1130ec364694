import math
from pathlib import Path
from typing import Any

import pytest

from registry.artifacts.adapter_changes import AdapterModule
from registry.artifacts.adapter_config import parse_adapter_config
from registry.artifacts.adapter_tensors import match_adapter_tensors
from registry.artifacts.base_model import BaseModelSummary, read_base_model
from registry.artifacts.findings import Finding
from registry.artifacts.safetensors_header import read_header
from tests.registry.artifacts.builders import (
    FFN,
    HIDDEN,
    llama_shapes,
    lora_config,
    lora_shapes,
    make_base,
    write_tensors,
)

Q0 = "model.layers.0.self_attn.q_proj"
PREFIX = "base_model.model."


@pytest.fixture
def base(tmp_path: Path) -> BaseModelSummary:
    return read_base_model(make_base(tmp_path / "base"))


def match(
    tmp_path: Path, base: BaseModelSummary, shapes: dict[str, Any], **config: Any
) -> tuple[dict[str, AdapterModule], list[Finding]]:
    header = read_header(write_tensors(tmp_path / "adapter.safetensors", shapes))
    result = match_adapter_tensors(header.tensors, parse_adapter_config(lora_config(**config)), base)
    return {module.module: module for module in result.modules}, list(result.findings)


def codes(findings: list[Finding]) -> list[str]:
    return sorted({finding.code for finding in findings})


def test_every_tensor_finds_its_weight(tmp_path: Path, base: BaseModelSummary) -> None:
    modules, findings = match(tmp_path, base, lora_shapes())
    assert findings == []
    assert len(modules) == 14  # 7 projections x 2 layers
    assert modules[Q0] == AdapterModule(
        module=Q0,
        base_tensor=f"{Q0}.weight",
        tensor_a=f"{PREFIX}{Q0}.lora_A.weight",
        tensor_b=f"{PREFIX}{Q0}.lora_B.weight",
        rank=4,
        alpha=8.0,
        scaling=2.0,  # 8 / 4
        is_transposed=False,
        num_parameters=4 * (HIDDEN + HIDDEN),
    )


@pytest.mark.parametrize(
    ("config", "scaling"),
    [
        ({}, 2.0),
        ({"use_rslora": True}, 8 / math.sqrt(4)),
        ({"alpha_pattern": {"q_proj": 2}}, 0.5),
        ({"alpha_pattern": {"k_proj": 2}}, 2.0),
        ({"alpha_pattern": {"self_attn.q_proj": 2, "q_proj": 16}}, 0.5),  # the first match counts
        ({"lora_alpha": 1}, 0.25),
    ],
)
def test_scaling(tmp_path: Path, base: BaseModelSummary, config: dict[str, Any], scaling: float) -> None:
    modules, findings = match(tmp_path, base, lora_shapes(), **config)
    assert findings == []
    assert modules[Q0].scaling == pytest.approx(scaling, rel=1e-12)


def test_rank_pattern(tmp_path: Path, base: BaseModelSummary) -> None:
    shapes = {**lora_shapes(), **lora_shapes(rank=2, targets=("q_proj",))}
    modules, findings = match(tmp_path, base, shapes, rank_pattern={"q_proj": 2})
    assert findings == []
    assert (modules[Q0].rank, modules[Q0].scaling) == (2, 4.0)
    assert codes(match(tmp_path, base, shapes)[1]) == ["rank-mismatch"]


def test_layers_to_transform(tmp_path: Path, base: BaseModelSummary) -> None:
    modules, findings = match(tmp_path, base, lora_shapes(num_layers=1), layers_to_transform=[0])
    assert findings == []
    assert len(modules) == 7


def test_missing_deeper_layers_mean_another_base(tmp_path: Path, base: BaseModelSummary) -> None:
    assert codes(match(tmp_path, base, lora_shapes(num_layers=1))[1]) == ["layers-missing"]


def test_missing_modules_are_a_warning(tmp_path: Path, base: BaseModelSummary) -> None:
    _, findings = match(tmp_path, base, lora_shapes(targets=("q_proj", "v_proj")))
    assert [(finding.code, finding.severity.value) for finding in findings] == [
        ("modules-missing", "warning")
    ]


def test_a_deeper_adapter(tmp_path: Path, base: BaseModelSummary) -> None:
    _, findings = match(tmp_path, base, lora_shapes(num_layers=3))
    assert codes(findings) == ["module-unknown"]
    assert len(findings) == 7


def test_a_wider_adapter(tmp_path: Path, base: BaseModelSummary) -> None:
    shapes = {
        f"{PREFIX}{Q0}.lora_A.weight": ("F32", (4, HIDDEN * 2)),
        f"{PREFIX}{Q0}.lora_B.weight": ("F32", (HIDDEN * 2, 4)),
    }
    _, findings = match(tmp_path, base, shapes, target_modules=["q_proj"], layers_to_transform=[0])
    assert codes(findings) == ["shape-mismatch"]
    assert "[16, 16]" in findings[0].message
    assert "[8, 8]" in findings[0].message


def test_tensors_outside_the_targets(tmp_path: Path, base: BaseModelSummary) -> None:
    _, findings = match(tmp_path, base, lora_shapes(), target_modules=["q_proj"])
    assert codes(findings) == ["module-not-targeted"]
    assert len(findings) == 12


def test_an_empty_file(tmp_path: Path, base: BaseModelSummary) -> None:
    assert codes(match(tmp_path, base, {})[1]) == ["adapter-empty"]


@pytest.mark.parametrize(
    ("name", "code"),
    [
        (f"{Q0}.lora_A.weight", "tensor-prefix-missing"),
        (f"{PREFIX}{PREFIX}{Q0}.lora_A.weight", "adapter-double-wrapped"),
        (f"{PREFIX}{Q0}.lora_A.default.weight", "tensor-adapter-name"),
        (f"{PREFIX}{Q0}.lora_magnitude_vector", "adapter-dora"),
        (f"{PREFIX}{Q0}.lora_magnitude_vector.weight", "adapter-dora"),
        (f"{PREFIX}{Q0}.lora_B.bias", "adapter-lora-bias"),
        (f"{PREFIX}{Q0}.bias", "adapter-bias"),
        (f"{PREFIX}{Q0}.lora_diag", "adapter-kasa"),
        (f"{PREFIX}{Q0}.lora_A.router.bias", "tensor-adapter-name"),
        (f"{PREFIX}{Q0}.lora_router.weight", "tensor-unexpected"),
        (f"{PREFIX}model.embed_tokens.token_adapter.trainable_tokens_delta", "adapter-trainable-tokens"),
        (f"{PREFIX}lm_head.modules_to_save.weight", "adapter-modules-to-save"),
        (f"{PREFIX}{Q0}.base_layer.weight", "adapter-full-weights"),
        (f"{PREFIX}model.norm.weight", "adapter-full-weights"),
        (f"{PREFIX}lm_head.bias", "adapter-bias"),
        (f"{PREFIX}prompt_embeddings", "tensor-unexpected"),
    ],
)
def test_extra_tensors_are_named_for_what_they_are(
    tmp_path: Path, base: BaseModelSummary, name: str, code: str
) -> None:
    _, findings = match(tmp_path, base, {**lora_shapes(), name: ("F32", (4, HIDDEN))})
    assert codes(findings) == [code]
    assert findings[0].where == name


@pytest.mark.parametrize(
    ("a", "b", "code"),
    [
        (("F32", (4, HIDDEN)), None, "tensor-pair-incomplete"),
        (None, ("F32", (HIDDEN, 4)), "tensor-pair-incomplete"),
        (("F32", (0,)), ("F32", (0,)), "tensor-empty"),
        (("F32", (0, HIDDEN)), ("F32", (HIDDEN, 0)), "tensor-empty"),
        (("F32", (4, HIDDEN)), ("F32", (HIDDEN, 2)), "tensor-shape-invalid"),
        (("F32", (4, HIDDEN, 1, 1)), ("F32", (HIDDEN, 4, 1, 1)), "tensor-shape-invalid"),
        (("U8", (4, HIDDEN)), ("F32", (HIDDEN, 4)), "tensor-dtype-unsupported"),
        (("F32", (4, HIDDEN)), ("F64", (HIDDEN, 4)), "tensor-dtype-unsupported"),
    ],
)
def test_broken_pairs(tmp_path: Path, base: BaseModelSummary, a: Any, b: Any, code: str) -> None:
    shapes = lora_shapes()
    for half, value in (("A", a), ("B", b)):
        del shapes[f"{PREFIX}{Q0}.lora_{half}.weight"]
        if value is not None:
            shapes[f"{PREFIX}{Q0}.lora_{half}.weight"] = value
    modules, findings = match(tmp_path, base, shapes)
    assert codes(findings) == [code]
    assert Q0 not in modules
    assert len(modules) == 13


def test_a_pair_of_transposed_halves(tmp_path: Path, base: BaseModelSummary) -> None:
    """As MLX stores them: A is [d_in, rank], B is [rank, d_out]."""
    shapes = lora_shapes()
    shapes[f"{PREFIX}{Q0}.lora_A.weight"] = ("F32", (HIDDEN, 4))
    shapes[f"{PREFIX}{Q0}.lora_B.weight"] = ("F32", (4, HIDDEN))
    assert codes(match(tmp_path, base, shapes)[1]) == ["rank-mismatch", "shape-mismatch"]


def test_conv1d_weights_are_transposed(tmp_path: Path) -> None:
    """GPT-2's Conv1D stores (in, out): c_attn of hidden 8 is [8, 24]."""
    weights = {"transformer.h.0.attn.c_attn.weight": ("F32", (HIDDEN, 3 * HIDDEN))}
    base = read_base_model(
        make_base(tmp_path / "gpt2", weights, model_type="gpt2", architectures=["GPT2LMHeadModel"])
    )
    module = "transformer.h.0.attn.c_attn"
    shapes = {
        f"{PREFIX}{module}.lora_A.weight": ("F32", (4, HIDDEN)),
        f"{PREFIX}{module}.lora_B.weight": ("F32", (3 * HIDDEN, 4)),
    }
    modules, findings = match(tmp_path, base, shapes, target_modules=["c_attn"], fan_in_fan_out=True)
    assert findings == []
    assert modules[module].is_transposed


def test_a_transposed_pair_does_not_fit_a_linear_layer(tmp_path: Path, base: BaseModelSummary) -> None:
    up = "model.layers.0.mlp.up_proj"
    shapes = lora_shapes()
    shapes[f"{PREFIX}{up}.lora_A.weight"] = ("F32", (4, FFN))
    shapes[f"{PREFIX}{up}.lora_B.weight"] = ("F32", (HIDDEN, 4))
    assert codes(match(tmp_path, base, shapes, fan_in_fan_out=True)[1]) == ["shape-mismatch"]


def test_a_quantised_base_weight(tmp_path: Path) -> None:
    weights = {**llama_shapes(), f"{Q0}.weight": ("U8", (HIDDEN, HIDDEN))}
    base = read_base_model(make_base(tmp_path / "quantised", weights))
    assert codes(match(tmp_path, base, lora_shapes())[1]) == ["base-dtype-unsupported"]


def test_another_prefix_is_suggested(tmp_path: Path) -> None:
    weights = {
        name.replace("model.", "model.language_model."): value for name, value in llama_shapes().items()
    }
    base = read_base_model(make_base(tmp_path / "vlm", weights))
    _, findings = match(tmp_path, base, lora_shapes())
    unknown = next(
        finding for finding in findings if finding.code == "module-unknown" and finding.where == Q0
    )
    assert "model.language_model.layers.0.self_attn.q_proj.weight" in unknown.message
