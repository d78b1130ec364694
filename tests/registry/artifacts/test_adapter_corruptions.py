"""Corrupted and ill-matched adapters: each is refused for its reason, even where only the merge is asked
for.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from registry.artifacts.adapter_check import check_adapter
from tests.registry.artifacts.builders import (
    FFN,
    HIDDEN,
    VOCAB,
    llama_shapes,
    lora_shapes,
    make_adapter,
    make_base,
)

P = "base_model.model."
Q0 = f"{P}model.layers.0.self_attn.q_proj"
E = f"{P}model.embed_tokens"
H = f"{P}lm_head"
QUERY = ["q_proj"]
Shapes = dict[str, Any]


def query(**more: Any) -> Shapes:
    """Return a sound adapter on q_proj, with more tensors."""
    return {**lora_shapes(targets=("q_proj",)), **more}


def without(shapes: Shapes, *endings: str) -> Shapes:
    return {name: value for name, value in shapes.items() if not name.endswith(endings)}


def renamed(shapes: Shapes, old: str, new: str) -> Shapes:
    return {name.replace(old, new): value for name, value in shapes.items()}


def with_tensors(shapes: Shapes, tensors: Shapes) -> Shapes:
    return {**shapes, **tensors}


def dora(shapes: Shapes) -> Shapes:
    magnitudes = {
        name.replace("lora_B.weight", "lora_magnitude_vector"): (dtype, shape[:1])
        for name, (dtype, shape) in shapes.items()
        if name.endswith("lora_B.weight")
    }
    return {**shapes, **magnitudes}


def embedding(rows: int = VOCAB, hidden: int = HIDDEN) -> Shapes:
    return {f"{E}.lora_embedding_A": ("F32", (4, rows)), f"{E}.lora_embedding_B": ("F32", (hidden, 4))}


FULL = ("F32", (VOCAB, HIDDEN))
ROWS = {f"{E}.token_adapter.trainable_tokens_delta": ("F32", (2, HIDDEN))}
EXPERTS = f"{P}model.layers.0.mlp.experts"
# Two experts of p = 2 x 16 rows and q = 8 columns; peft from 0.19 on: A [2 * 4, 8], B [32, 4 * 2].
PARAMETER = {
    f"{EXPERTS}.lora_A.weight": ("F32", (8, HIDDEN)),
    f"{EXPERTS}.lora_B.weight": ("F32", (2 * FFN, 8)),
}
PARAMETER_CONFIG = {"target_modules": [], "target_parameters": ["experts.gate_up_proj"]}

# (tensors, configuration, code): the adapter would be sound but for one thing.
TENSOR_CASES: list[tuple[str, Shapes, dict[str, Any], str]] = [
    ("no tensor", {}, {}, "adapter-empty"),
    ("no lora_B at all", without(lora_shapes(), "lora_B.weight"), {}, "tensor-pair-incomplete"),
    ("one half lost", without(lora_shapes(), "0.mlp.up_proj.lora_A.weight"), {}, "tensor-pair-incomplete"),
    (
        "halves swapped",
        renamed(renamed(renamed(lora_shapes(), "lora_A", "x"), "lora_B", "lora_A"), ".x", ".lora_B"),
        {},
        "tensor-shape-invalid",
    ),
    ("empty shards", {name: ("F32", (0,)) for name in lora_shapes()}, {}, "tensor-empty"),
    ("integers", lora_shapes(dtype="I8"), {}, "tensor-dtype-unsupported"),
    ("float64", lora_shapes(dtype="F64"), {}, "tensor-dtype-unsupported"),
    (
        "four-bit",
        {name: ("U8", shape) for name, (_, shape) in lora_shapes().items()},
        {},
        "tensor-dtype-unsupported",
    ),
    (
        "convolution",
        with_tensors(lora_shapes(), {f"{Q0}.lora_A.weight": ("F32", (4, HIDDEN, 1, 1))}),
        {},
        "tensor-shape-invalid",
    ),
    (
        "vector",
        with_tensors(lora_shapes(), {f"{Q0}.lora_A.weight": ("F32", (4 * HIDDEN,))}),
        {},
        "tensor-shape-invalid",
    ),
    ("another rank", lora_shapes(rank=8), {}, "rank-mismatch"),
    ("rank_pattern of another file", lora_shapes(), {"rank_pattern": {"q_proj": 2}}, "rank-mismatch"),
    (
        "transposed",
        with_tensors(
            lora_shapes(),
            {f"{Q0}.lora_A.weight": ("F32", (HIDDEN, 4)), f"{Q0}.lora_B.weight": ("F32", (4, HIDDEN))},
        ),
        {},
        "shape-mismatch",
    ),
    (
        "wider base",
        with_tensors(
            lora_shapes(),
            {
                f"{Q0}.lora_A.weight": ("F32", (4, HIDDEN * 2)),
                f"{Q0}.lora_B.weight": ("F32", (HIDDEN * 2, 4)),
            },
        ),
        {},
        "shape-mismatch",
    ),
    ("deeper base", lora_shapes(num_layers=3), {}, "module-unknown"),
    ("shallower base", lora_shapes(num_layers=1), {}, "layers-missing"),
    (
        "other architecture",
        renamed(lora_shapes(), "self_attn.q_proj", "attention.query"),
        {},
        "module-unknown",
    ),
    ("vision tower", renamed(lora_shapes(), "model.layers", "model.visual.blocks"), {}, "module-unknown"),
    ("other targets", lora_shapes(), {"target_modules": QUERY}, "module-not-targeted"),
    ("excluded module", lora_shapes(), {"exclude_modules": ["o_proj"]}, "module-not-targeted"),
    ("excluded layer", lora_shapes(), {"layers_to_transform": [0]}, "module-not-targeted"),
    ("no prefix", renamed(lora_shapes(), P, ""), {}, "tensor-prefix-missing"),
    ("two prefixes", renamed(lora_shapes(), P, P + P), {}, "adapter-double-wrapped"),
    ("adapter's own name", renamed(lora_shapes(), ".weight", ".default.weight"), {}, "tensor-adapter-name"),
    ("old names", renamed(lora_shapes(), "lora_A.weight", "lora_a"), {}, "tensor-unexpected"),
    (
        "stray tensor",
        query(**{f"{P}rotary.inv_freq": ("F32", (4,))}),
        {"target_modules": QUERY},
        "tensor-unexpected",
    ),
    ("KaSA diagonal", query(**{f"{Q0}.lora_diag": ("F32", (4,))}), {"target_modules": QUERY}, "adapter-kasa"),
    (
        "unknown LoRA part",
        query(**{f"{Q0}.lora_gate.weight": ("F32", (4,))}),
        {"target_modules": QUERY},
        "tensor-unexpected",
    ),
    (
        "whole layer unannounced",
        query(**{f"{P}model.layers.0.mlp.up_proj.weight": ("F32", (FFN, HIDDEN))}),
        {"target_modules": QUERY},
        "adapter-full-weights",
    ),
    (
        "base layer unannounced",
        query(**{f"{Q0}.base_layer.weight": ("F32", (HIDDEN, HIDDEN))}),
        {"target_modules": QUERY},
        "adapter-full-weights",
    ),
    (
        "norm unannounced",
        query(**{f"{P}model.norm.weight": ("F32", (HIDDEN,))}),
        {"target_modules": QUERY},
        "adapter-full-weights",
    ),
    ("magnitude unannounced", dora(query()), {"target_modules": QUERY}, "adapter-dora"),
    ("DoRA without magnitudes", query(), {"target_modules": QUERY, "use_dora": True}, "tensor-missing"),
    (
        "one magnitude lost",
        without(dora(query()), "0.self_attn.q_proj.lora_magnitude_vector"),
        {"target_modules": QUERY, "use_dora": True},
        "tensor-missing",
    ),
    (
        "short magnitude",
        with_tensors(dora(query()), {f"{Q0}.lora_magnitude_vector": ("F32", (HIDDEN - 1,))}),
        {"target_modules": QUERY, "use_dora": True},
        "shape-mismatch",
    ),
    (
        "magnitude as a column",
        with_tensors(dora(query()), {f"{Q0}.lora_magnitude_vector": ("F32", (HIDDEN, 1))}),
        {"target_modules": QUERY, "use_dora": True},
        "shape-mismatch",
    ),
    (
        "bias unannounced",
        query(**{f"{Q0}.base_layer.bias": ("F32", (HIDDEN,))}),
        {"target_modules": QUERY},
        "adapter-bias",
    ),
    (
        "bias that the base has not",
        query(**{f"{P}model.norm.bias": ("F32", (HIDDEN,))}),
        {"target_modules": QUERY, "bias": "all"},
        "adapter-bias",
    ),
    ("biases lost", query(), {"target_modules": QUERY, "bias": "all"}, "tensor-missing"),
    ("lora_only biases lost", query(), {"target_modules": QUERY, "bias": "lora_only"}, "tensor-missing"),
    (
        "bias of another size",
        query(**{f"{Q0}.base_layer.bias": ("F32", (HIDDEN + 1,))}),
        {"target_modules": QUERY, "bias": "lora_only"},
        "shape-mismatch",
    ),
    (
        "bias of lora_B unannounced",
        query(**{f"{Q0}.lora_B.bias": ("F32", (HIDDEN,))}),
        {"target_modules": QUERY},
        "adapter-lora-bias",
    ),
    ("bias of lora_B lost", query(), {"target_modules": QUERY, "lora_bias": True}, "tensor-missing"),
    (
        "lora_B bias, base without one",
        lora_shapes(targets=("o_proj",))
        | {f"{P}model.layers.{layer}.self_attn.o_proj.lora_B.bias": ("F32", (HIDDEN,)) for layer in (0, 1)},
        {"target_modules": ["o_proj"], "lora_bias": True},
        "adapter-lora-bias",
    ),
    (
        "modules_to_save lost",
        query(),
        {"target_modules": QUERY, "modules_to_save": ["norm"]},
        "tensor-missing",
    ),
    (
        "output layer to save lost",
        query(),
        {"target_modules": QUERY, "modules_to_save": ["lm_head"]},
        "tensor-missing",
    ),
    (
        "module to save of another size",
        query(**{f"{P}model.norm.weight": ("F32", (HIDDEN * 2,))}),
        {"target_modules": QUERY, "modules_to_save": ["model.norm"]},
        "shape-mismatch",
    ),
    (
        "module to save as integers",
        query(**{f"{P}model.norm.weight": ("I8", (HIDDEN,))}),
        {"target_modules": QUERY, "modules_to_save": ["model.norm"]},
        "tensor-dtype-unsupported",
    ),
    (
        "copy without its module",
        query(**{f"{H}.modules_to_save.weight": FULL}),
        {"target_modules": QUERY, "modules_to_save": ["lm_head"]},
        "adapter-modules-to-save",
    ),
    (
        "copy of another size",
        query(**{f"{E}.weight": FULL, f"{E}.original_module.weight": ("F32", (8, HIDDEN))}),
        {"target_modules": QUERY, "modules_to_save": ["embed_tokens"]},
        "shape-mismatch",
    ),
    (
        "wider embedding",
        query(**{f"{E}.weight": ("F32", (VOCAB, HIDDEN * 2))}),
        {"target_modules": QUERY},
        "shape-mismatch",
    ),
    (
        "resized embedding alone",
        query(**{f"{E}.weight": ("F32", (VOCAB + 8, HIDDEN))}),
        {"target_modules": QUERY, "modules_to_save": ["embed_tokens"]},
        "vocabulary-mismatch",
    ),
    (
        "two sizes of vocabulary",
        query(**{f"{E}.weight": ("F32", (VOCAB + 8, HIDDEN)), f"{H}.weight": ("F32", (VOCAB + 9, HIDDEN))}),
        {"target_modules": QUERY, "modules_to_save": ["embed_tokens", "lm_head"]},
        "vocabulary-mismatch",
    ),
    (
        "vocabulary below the tokenizer",
        query(**{f"{E}.weight": ("F32", (8, HIDDEN)), f"{H}.weight": ("F32", (8, HIDDEN))}),
        {"target_modules": QUERY},
        "vocabulary-too-small",
    ),
    (
        "embedding LoRA of another vocabulary",
        {**query(), **embedding(rows=VOCAB + 1)},
        {"target_modules": [*QUERY, "embed_tokens"]},
        "shape-mismatch",
    ),
    (
        "half of an embedding LoRA",
        without({**query(), **embedding()}, "embedding_B"),
        {"target_modules": [*QUERY, "embed_tokens"]},
        "tensor-pair-incomplete",
    ),
    (
        "embedding LoRA unannounced",
        {**query(), **embedding()},
        {"target_modules": QUERY},
        "module-not-targeted",
    ),
    ("token rows unannounced", {**query(), **ROWS}, {"target_modules": QUERY}, "adapter-trainable-tokens"),
    (
        "token rows lost",
        query(),
        {"target_modules": QUERY, "trainable_token_indices": [1, 2]},
        "tensor-missing",
    ),
    (
        "more token numbers than rows",
        {**query(), **ROWS},
        {"target_modules": QUERY, "trainable_token_indices": [1, 2, 3]},
        "shape-mismatch",
    ),
    (
        "token beyond the vocabulary",
        {**query(), **ROWS},
        {"target_modules": QUERY, "trainable_token_indices": [1, VOCAB]},
        "token-index-out-of-range",
    ),
    (
        "token rows of another layer",
        {**query(), **ROWS},
        {"target_modules": QUERY, "trainable_token_indices": {"wte": [1, 2]}},
        "adapter-trainable-tokens",
    ),
    (
        "a token twice",
        {**query(), **ROWS},
        {"target_modules": QUERY, "trainable_token_indices": [1, 1]},
        "adapter-config-field-invalid",
    ),
    (
        "experts of another number",
        with_tensors(
            PARAMETER,
            {
                f"{EXPERTS}.lora_A.weight": ("F32", (9, HIDDEN)),
                f"{EXPERTS}.lora_B.weight": ("F32", (2 * FFN, 9)),
            },
        ),
        PARAMETER_CONFIG,
        "shape-mismatch",
    ),
    ("experts of another rank", PARAMETER, {**PARAMETER_CONFIG, "r": 2}, "rank-mismatch"),
    (
        "experts of another width",
        with_tensors(PARAMETER, {f"{EXPERTS}.lora_A.weight": ("F32", (8, HIDDEN + 1))}),
        PARAMETER_CONFIG,
        "shape-mismatch",
    ),
    (
        "one of two wrappers lost",
        PARAMETER,
        {"target_modules": [], "target_parameters": ["experts.gate_up_proj", "experts.down_proj"]},
        "tensor-missing",
    ),
    ("parameter unannounced", PARAMETER, {"target_modules": []}, "module-unknown"),
    ("half of a parameter", without(PARAMETER, "lora_A.weight"), PARAMETER_CONFIG, "tensor-pair-incomplete"),
    (
        "parameters that the base has not",
        PARAMETER,
        {"target_modules": [], "target_parameters": ["experts.w1"]},
        "module-unknown",
    ),
    ("zero alpha", lora_shapes(), {"lora_alpha": 0}, "adapter-alpha-zero"),
    ("alpha as text", lora_shapes(), {"lora_alpha": "16"}, "adapter-config-field-invalid"),
    ("rank as a fraction", lora_shapes(), {"r": 4.5}, "adapter-config-field-invalid"),
    ("huge rank", lora_shapes(), {"r": 10**9}, "adapter-config-field-invalid"),
    ("explosive pattern", lora_shapes(), {"target_modules": "(.*)*q_proj"}, "adapter-pattern-invalid"),
    ("prompt tuning", lora_shapes(), {"peft_type": "PROMPT_TUNING"}, "adapter-not-lora"),
    ("classifier", lora_shapes(), {"task_type": "SEQ_CLS"}, "adapter-not-causal-lm"),
    ("changed base (PiSSA)", lora_shapes(), {"init_lora_weights": "pissa"}, "adapter-init-pissa"),
    ("changed base (LoRA-GA)", lora_shapes(), {"init_lora_weights": "lora_ga"}, "adapter-init-lora-ga"),
    ("changed base (CorDA)", lora_shapes(), {"init_lora_weights": "corda"}, "adapter-init-corda"),
    (
        "more layers than the base",
        lora_shapes(),
        {"layer_replication": [[0, 2], [0, 2]]},
        "adapter-layer-replication",
    ),
    ("routed", lora_shapes(), {"arrow_config": {"top_k": 1}}, "adapter-arrow"),
]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untied tiny Llama with biases on q_proj, two fused experts, and a tokenizer of all tokens."""
    shapes = llama_shapes(is_tied=False)
    for layer in (0, 1):
        shapes[f"model.layers.{layer}.self_attn.q_proj.bias"] = ("BF16", (HIDDEN,))
    shapes["model.layers.0.mlp.experts.gate_up_proj"] = ("BF16", (2, 2 * FFN, HIDDEN))
    shapes["model.layers.0.mlp.experts.down_proj"] = ("BF16", (2, HIDDEN, FFN))
    folder = make_base(tmp_path_factory.mktemp("corrupt") / "base", shapes, tie_word_embeddings=False)
    vocab = {str(number): number for number in range(VOCAB)}
    (folder / "tokenizer.json").write_text(json.dumps({"model": {"vocab": vocab}}), encoding="utf-8")
    return folder


def errors_of(adapter: Path, base: Path) -> set[str]:
    check = check_adapter(adapter, base, is_adapter_form_needed=False)
    return {finding.code for finding in check.findings if finding.severity == "error"}


@pytest.mark.parametrize(
    ("shapes", "config", "code"),
    [case[1:] for case in TENSOR_CASES],
    ids=[case[0] for case in TENSOR_CASES],
)
def test_refused_for_its_reason(tmp_path: Path, base: Path, shapes: Shapes, config: Any, code: str) -> None:
    assert code in errors_of(make_adapter(tmp_path / "adapter", shapes, **config), base)


@pytest.mark.parametrize(
    ("shapes", "config"),
    [
        (lora_shapes(), {}),
        (dora(query()), {"target_modules": QUERY, "use_dora": True}),
        (PARAMETER, PARAMETER_CONFIG),
        ({**query(), **ROWS}, {"target_modules": QUERY, "trainable_token_indices": [1, 2]}),
        ({**query(), **embedding()}, {"target_modules": [*QUERY, "embed_tokens"]}),
    ],
)
def test_what_the_cases_start_from_is_sound(tmp_path: Path, base: Path, shapes: Shapes, config: Any) -> None:
    assert errors_of(make_adapter(tmp_path / "adapter", shapes, **config), base) == set()


def test_there_are_enough_of_them() -> None:
    """Issue 5 asks for at least 60, all different; damaged files are in test_adapter_damage.py."""
    assert len({case[0] for case in TENSOR_CASES}) == len(TENSOR_CASES) >= 75
