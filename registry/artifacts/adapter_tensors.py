"""Matches every tensor of a LoRA file with a weight of the base model, in both directions, by name and shape.

peft passes over tensors that it does not expect without a word, and vLLM serves the plain base model when
nothing matches; so here a tensor that has no place, or a place that has half a pair, is an error. Works on
headers: no torch, no values.
"""

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from registry.artifacts.adapter_config import AdapterConfig
from registry.artifacts.base_model import BaseModelSummary
from registry.artifacts.findings import Finding, shown, shown_list
from registry.artifacts.module_patterns import EMBEDDING_NAMES, is_target, layer_index, leaf_name, match_first
from registry.artifacts.safetensors_header import TensorInfo

PREFIX = "base_model.model."
ADAPTER_DTYPES = frozenset({"F32", "F16", "BF16"})
# Model types whose projections are transformers' Conv1D, which stores (in, out) instead of (out, in). peft
# sets fan_in_fan_out by the layer's class, whatever the config says (tuners/lora/layer.py, dispatch_default).
_CONV1D_MODEL_TYPES = frozenset({"gpt2", "openai-gpt", "imagegpt", "decision_transformer"})
_SAVE_AGAIN = "Save it with peft: model.save_pretrained(folder)."
_GATHER = "Gather the shards before saving (DeepSpeed ZeRO-3, FSDP), then save again."
_TRAIN_PLAIN = "Train a plain LoRA and submit that."
_REMEDIES = {
    "tensor-adapter-name": _SAVE_AGAIN,
    # peft adds the whole matrix by itself when an embedding or the output layer is a target.
    "adapter-full-weights": (
        "Save it with model.save_pretrained(folder, save_embedding_layers=False), and train without "
        "modules_to_save."
    ),
}
_PAIR = re.compile(r"(?P<module>.+)\.lora_(?P<half>[AB])\.weight")
# What other tensors of a peft file mean, first match counts; the codes are those of the config's rules.
_OTHER_TENSORS = (
    (r".*\.lora_magnitude_vector(\..*)?", "adapter-dora", "a DoRA magnitude"),
    (r".*\.lora_embedding_[AB](\..*)?", "adapter-embedding", "a LoRA of an embedding"),
    (r".*\.lora_[AB]\.bias", "adapter-lora-bias", "a bias of a LoRA layer"),
    (r".*\.lora_diag.*", "adapter-kasa", "a KaSA diagonal"),
    (r".*trainable_tokens.*", "adapter-trainable-tokens", "rows of an embedding"),
    (r".*\.modules_to_save\..*", "adapter-modules-to-save", "a module that replaces one of the base"),
    (
        r".*\.lora_[AB]\.[^.]+\.weight",
        "tensor-adapter-name",
        "a LoRA half whose name still holds the adapter's name",
    ),
    (r".*\.base_layer\.(weight|bias)", "adapter-full-weights", "a whole weight of the base model"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterModule:
    """One adapted weight: scaling * B @ A, transposed if `is_transposed`, is added to the base tensor.

    Attributes:
        module: dotted name in the base model.
        base_tensor: name of the weight in the base model's files.
        tensor_a: name in the adapter's file of A: [rank, d_in].
        tensor_b: name in the adapter's file of B: [d_out, rank].
        rank: from A's shape.
        alpha: from the configuration (alpha_pattern counts).
        scaling: alpha / rank, or alpha / sqrt(rank) with use_rslora.
        is_transposed: whether the base tensor is [d_in, d_out] (Conv1D) instead of [d_out, d_in].
        num_parameters: elements of A and B.
    """

    module: str
    base_tensor: str
    tensor_a: str
    tensor_b: str
    rank: int
    alpha: float
    scaling: float
    is_transposed: bool
    num_parameters: int


def match_adapter_tensors(
    tensors: Mapping[str, TensorInfo], config: AdapterConfig, base: BaseModelSummary
) -> tuple[tuple[AdapterModule, ...], list[Finding]]:
    """Return the adapted modules, sorted by name, and what does not fit.

    Args:
        tensors: of the adapter's header.
        config: its configuration, with patterns that passed `find_pattern_fault`.
        base: the base model chosen at submission.
    """
    if not tensors:
        message = "The file holds no tensor at all, so the adapter would change nothing."
        return (), [Finding.error("adapter-empty", message, remedy=_GATHER)]
    findings: list[Finding] = []
    pairs: dict[str, dict[str, TensorInfo]] = {}
    for name, tensor in sorted(tensors.items()):
        match = _PAIR.fullmatch(name.removeprefix(PREFIX))
        if name.startswith(PREFIX) and match is not None and not match["module"].startswith(PREFIX):
            pairs.setdefault(match["module"], {})[match["half"]] = tensor
        else:
            findings.append(_explain_other(name, base))
    modules = []
    for module, halves in sorted(pairs.items()):
        faults = list(_check_pair(module, halves, config, base))
        findings.extend(faults)
        if not faults:
            modules.append(_make_module(module, halves, config, base))
    findings.extend(_check_coverage(set(pairs), config, base))
    return tuple(modules), findings


def _explain_other(name: str, base: BaseModelSummary) -> Finding:
    where = shown(name)
    if not name.startswith(PREFIX):
        message = f"The name does not start with {PREFIX!r}, as peft writes it."
        return Finding.error("tensor-prefix-missing", message, where=where, remedy=_SAVE_AGAIN)
    rest = name.removeprefix(PREFIX)
    if rest.startswith(PREFIX):
        message = "The name has peft's prefix twice: the adapter was put on a model that already had one."
        remedy = "Merge the first adapter into the base and register that, or train once on the plain base."
        return Finding.error("adapter-double-wrapped", message, where=where, remedy=remedy)
    for pattern, code, meaning in _OTHER_TENSORS:
        if re.fullmatch(pattern, rest):
            message = f"The tensor is {meaning}, which is not merged."
            return Finding.error(code, message, where=where, remedy=_REMEDIES.get(code, _TRAIN_PLAIN))
    if rest.endswith(".bias"):
        message = "The tensor is a bias of the base model that was trained as well."
        return Finding.error("adapter-bias", message, where=where, remedy="Train with bias='none'.")
    if rest in base.tensors:
        message = "The tensor replaces a whole weight of the base model."
        code = "adapter-full-weights"
        return Finding.error(code, message, where=where, remedy=_REMEDIES[code])
    message = (
        "The tensor is no half of a LoRA pair and is in no base model's weight; peft would pass over it "
        "silently."
    )
    return Finding.error("tensor-unexpected", message, where=where, remedy=_SAVE_AGAIN)


def _check_pair(
    module: str, halves: Mapping[str, TensorInfo], config: AdapterConfig, base: BaseModelSummary
) -> Iterator[Finding]:
    where = shown(module)
    if len(halves) < 2:
        present = next(iter(halves))
        message = f"Only lora_{present} is in the file, its other half is missing."
        yield Finding.error("tensor-pair-incomplete", message, where=where, remedy=_GATHER)
        return
    a, b = halves["A"], halves["B"]
    for half, tensor in (("A", a), ("B", b)):
        if tensor.dtype not in ADAPTER_DTYPES:
            message = (
                f"lora_{half} has dtype {tensor.dtype}; allowed are {', '.join(sorted(ADAPTER_DTYPES))}."
            )
            yield Finding.error(
                "tensor-dtype-unsupported", message, where=where, remedy="Save the adapter in fp32 or bf16."
            )
        if tensor.num_elements == 0:
            message = f"lora_{half} is empty (shape {list(tensor.shape)})."
            yield Finding.error("tensor-empty", message, where=where, remedy=_GATHER)
    if 0 in (a.num_elements, b.num_elements):
        return
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[0] != b.shape[1]:
        message = (
            f"lora_A {list(a.shape)} and lora_B {list(b.shape)} are no pair: expected are [rank, d_in] and "
            "[d_out, rank]."
        )
        yield Finding.error("tensor-shape-invalid", message, where=where, remedy=_SAVE_AGAIN)
        return
    yield from _check_against_config(module, a.shape[0], config)
    yield from _check_against_base(module, a, b, base)


def _check_against_config(module: str, rank: int, config: AdapterConfig) -> Iterator[Finding]:
    where = shown(module)
    expected = match_first(config.rank_pattern, module) or config.r
    if config.r and rank != expected:
        message = (
            f"The tensors have rank {rank}, adapter_config.json says {expected}; the scaling would be wrong."
        )
        remedy = "Submit the adapter_config.json that was written with these weights."
        yield Finding.error("rank-mismatch", message, where=where, remedy=remedy)
    if config.target_modules is not None and not is_target(config, module):
        message = (
            "The module has tensors, but target_modules does not mean it; peft would pass over them silently."
        )
        remedy = "Submit the adapter_config.json that was written with these weights."
        yield Finding.error("module-not-targeted", message, where=where, remedy=remedy)


def _check_against_base(
    module: str, a: TensorInfo, b: TensorInfo, base: BaseModelSummary
) -> Iterator[Finding]:
    where = shown(module)
    tensor = base.tensors.get(f"{module}.weight")
    remedy = "Choose the base model on which the adapter was trained."
    if tensor is None:
        message = f"The base model has no weight of this name{_suggest(module, base)}."
        yield Finding.error("module-unknown", message, where=where, remedy=remedy)
        return
    d_out, d_in = b.shape[0], a.shape[1]
    expected = (d_in, d_out) if _is_transposed(module, base) else (d_out, d_in)
    if tensor.info.shape != expected:
        message = (
            f"The adapter changes a weight of shape {list(expected)}, the base model's has shape "
            f"{list(tensor.info.shape)}."
        )
        yield Finding.error("shape-mismatch", message, where=where, remedy=remedy)
    if tensor.info.dtype not in ADAPTER_DTYPES:
        message = f"The base model's weight has dtype {tensor.info.dtype}, into which nothing can be merged."
        yield Finding.error(
            "base-dtype-unsupported", message, where=where, remedy="Register the unquantised base model."
        )


def _suggest(module: str, base: BaseModelSummary) -> str:
    """Name the one base weight with the same last parts, if there is exactly one: a prefix may differ."""
    ending = ".".join(module.split(".")[-4:]) + ".weight"
    similar = [name for name in base.tensors if f".{name}".endswith(f".{ending}")]
    return f" (it has {shown(similar[0])})" if len(similar) == 1 else ""


def _is_transposed(module: str, base: BaseModelSummary) -> bool:
    return base.model_type in _CONV1D_MODEL_TYPES and leaf_name(module) != "lm_head"


def _make_module(
    module: str, halves: Mapping[str, TensorInfo], config: AdapterConfig, base: BaseModelSummary
) -> AdapterModule:
    rank = halves["A"].shape[0]
    alpha = match_first(config.alpha_pattern, module)
    alpha = config.lora_alpha if alpha is None else float(alpha)
    return AdapterModule(
        module=module,
        base_tensor=f"{module}.weight",
        tensor_a=halves["A"].name,
        tensor_b=halves["B"].name,
        rank=rank,
        alpha=alpha,
        scaling=alpha / math.sqrt(rank) if config.use_rslora else alpha / rank,
        is_transposed=_is_transposed(module, base),
        num_parameters=halves["A"].num_elements + halves["B"].num_elements,
    )


def _check_coverage(adapted: set[str], config: AdapterConfig, base: BaseModelSummary) -> Iterator[Finding]:
    """Look for base modules that the config means and the file leaves out."""
    if config.target_modules is None:
        return
    expected = {module for module in _linear_modules(base) if is_target(config, module)}
    missing = sorted(expected - adapted)
    if not missing:
        return
    deepest = max((layer_index(module) or 0 for module in adapted & expected), default=None)
    if deepest is not None and all((layer_index(module) or 0) > deepest for module in missing):
        message = (
            f"The adapter covers the layers up to number {deepest}, the base model has target modules "
            "up to number "
            f"{max(layer_index(module) or 0 for module in missing)}: it was trained on a shallower model."
        )
        remedy = "Choose the base model on which the adapter was trained."
        yield Finding.error("layers-missing", message, remedy=remedy)
        return
    message = (
        f"target_modules means {len(missing)} modules of the base that have no tensors: "
        f"{shown_list(missing)}."
    )
    remedy = "If that is not meant, the file was saved incompletely."
    yield Finding.warning(
        "modules-missing", message, where="adapter_config.json: target_modules", remedy=remedy
    )


def _linear_modules(base: BaseModelSummary) -> Iterator[str]:
    for name, tensor in base.tensors.items():
        module = name.removesuffix(".weight")
        if module != name and len(tensor.info.shape) == 2 and leaf_name(module) not in EMBEDDING_NAMES:
            yield module
