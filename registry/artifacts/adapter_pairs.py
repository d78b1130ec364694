"""Checks the low-rank pairs of an adapter against its configuration and the base model's shapes.

Handles pairs on linear layers, on Conv1D layers and on embeddings, with DoRA's magnitudes and lora_B's
biases. Standard library only.
"""

import math
from collections.abc import Iterator, Mapping

from registry.artifacts.adapter_changes import AdapterModule, AddedBias
from registry.artifacts.adapter_config import AdapterConfig
from registry.artifacts.adapter_names import BaseNames, TensorRole
from registry.artifacts.base_model import BaseModelSummary
from registry.artifacts.findings import Finding, shown
from registry.artifacts.module_patterns import is_target, leaf_name, match_first
from registry.artifacts.safetensors_header import TensorInfo

ADAPTER_DTYPES = frozenset({"F32", "F16", "BF16"})
# Model types whose projections are transformers' Conv1D, which stores (in, out) instead of (out, in). peft
# sets fan_in_fan_out by the layer's class, whatever the config says (tuners/lora/layer.py, dispatch_default).
_CONV1D_MODEL_TYPES = frozenset({"gpt2", "openai-gpt", "imagegpt", "decision_transformer"})
GATHER = "Gather the shards before saving (DeepSpeed ZeRO-3, FSDP), then save again."
SAVE_AGAIN = "Save it with peft: model.save_pretrained(folder)."
OWN_CONFIG = "Submit the adapter_config.json that was written with these weights."
OTHER_BASE = "Choose the base model on which the adapter was trained."

Tensors = Mapping[TensorRole, TensorInfo]


def check_halves(
    module: str, a: TensorInfo | None, b: TensorInfo | None, prefix: str = "lora_"
) -> Iterator[Finding]:
    """Check that both halves are there, hold numbers of a known dtype, and fit together: [r, n] and [m,
    r].
    """
    where = shown(module)
    if a is None or b is None:
        present = f"{prefix}{'B' if a is None else 'A'}"
        message = f"Only {present} is in the file, its other half is missing."
        yield Finding.error("tensor-pair-incomplete", message, where=where, remedy=GATHER)
        return
    for half, tensor in ((f"{prefix}A", a), (f"{prefix}B", b)):
        yield from check_dtype(half, tensor, where)
    if 0 in (a.num_elements, b.num_elements):
        for half, tensor in ((f"{prefix}A", a), (f"{prefix}B", b)):
            if tensor.num_elements == 0:
                message = f"{half} is empty (shape {list(tensor.shape)})."
                yield Finding.error("tensor-empty", message, where=where, remedy=GATHER)
    elif len(a.shape) != 2 or len(b.shape) != 2 or a.shape[0] != b.shape[1]:
        message = (
            f"{prefix}A {list(a.shape)} and {prefix}B {list(b.shape)} are no pair: expected are [rank, d_in] "
            "and "
            "[d_out, rank]."
        )
        yield Finding.error("tensor-shape-invalid", message, where=where, remedy=SAVE_AGAIN)


def check_dtype(label: str, tensor: TensorInfo, where: str) -> Iterator[Finding]:
    """Check that a tensor of the adapter holds numbers that are merged."""
    if tensor.dtype not in ADAPTER_DTYPES:
        message = f"{label} has dtype {tensor.dtype}; allowed are {', '.join(sorted(ADAPTER_DTYPES))}."
        yield Finding.error(
            "tensor-dtype-unsupported", message, where=where, remedy="Save the adapter in fp32 or bf16."
        )


def check_base_dtype(tensor: TensorInfo, where: str) -> Iterator[Finding]:
    """Check that something can be merged into a tensor of the base."""
    if tensor.dtype not in ADAPTER_DTYPES:
        message = f"The base model's weight has dtype {tensor.dtype}, into which nothing can be merged."
        yield Finding.error(
            "base-dtype-unsupported", message, where=where, remedy="Register the unquantised base model."
        )


def check_rank_field(config: AdapterConfig, pattern_name: str, rank: int) -> Iterator[Finding]:
    """Check that the tensors have the rank that the configuration gives them."""
    expected = match_first(config.rank_pattern, pattern_name) or config.r
    if config.r and rank != expected:
        message = (
            f"The tensors have rank {rank}, adapter_config.json says {expected}; the scaling would be wrong."
        )
        yield Finding.error("rank-mismatch", message, where=shown(pattern_name), remedy=OWN_CONFIG)


def compute_scaling(config: AdapterConfig, pattern_name: str, rank: int) -> tuple[float, float]:
    """Return (alpha, scaling) of a module, alpha_pattern and rank-stabilised scaling counted."""
    pattern_alpha = match_first(config.alpha_pattern, pattern_name)
    alpha = config.lora_alpha if pattern_alpha is None else float(pattern_alpha)
    return alpha, alpha / math.sqrt(rank) if config.use_rslora else alpha / rank


class PairChecker:
    """Turns the tensors of one module into an `AdapterModule`, or says what is wrong with them.

    Args:
        config: of the adapter, with patterns that passed `find_pattern_fault`.
        base: the base model.
        names: of its tensors.
    """

    def __init__(self, config: AdapterConfig, base: BaseModelSummary, names: BaseNames) -> None:
        """Keep the three."""
        self._config = config
        self._base = base
        self._names = names

    def check(
        self, module: str, tensors: Tensors, shape: tuple[int, ...] | None
    ) -> tuple[AdapterModule | None, list[Finding]]:
        """Check one module.

        Args:
            module: dotted name in the model.
            tensors: those of its pair, its magnitude and its lora_B bias.
            shape: of the weight that is changed; None when the base has none of this name.
        """
        is_embedding = TensorRole.EMBEDDING_A in tensors or TensorRole.EMBEDDING_B in tensors
        if is_embedding:
            a, b = tensors.get(TensorRole.EMBEDDING_A), tensors.get(TensorRole.EMBEDDING_B)
        else:
            a, b = tensors.get(TensorRole.LORA_A), tensors.get(TensorRole.LORA_B)
        findings = list(check_halves(module, a, b, "lora_embedding_" if is_embedding else "lora_"))
        if findings or a is None or b is None:
            return None, findings
        is_transposed = is_embedding or self._is_conv1d(module)
        findings += check_rank_field(self._config, module, a.shape[0])
        findings += self._check_target(module)
        findings += self._check_shape(module, (b.shape[0], a.shape[1]), is_transposed, shape)
        findings += self._check_magnitude(module, tensors.get(TensorRole.MAGNITUDE), b.shape[0])
        findings += self._check_bias(module, tensors.get(TensorRole.LORA_B_BIAS), b.shape[0], is_embedding)
        if findings:
            return None, findings
        alpha, scaling = compute_scaling(self._config, module, a.shape[0])
        return AdapterModule(
            module=module,
            base_tensor=self._names.find(f"{module}.weight") or f"{module}.weight",
            tensor_a=a.name,
            tensor_b=b.name,
            rank=a.shape[0],
            alpha=alpha,
            scaling=scaling,
            is_transposed=is_transposed,
            num_parameters=sum(tensor.num_elements for tensor in tensors.values()),
            tensor_magnitude=tensors[TensorRole.MAGNITUDE].name if self._config.use_dora else None,
        ), []

    def added_bias(self, module: AdapterModule, tensors: Tensors) -> AddedBias | None:
        """Return what lora_B's bias adds to the base's; None without such a bias."""
        tensor = tensors.get(TensorRole.LORA_B_BIAS)
        return None if tensor is None else AddedBias(tensor=tensor.name, scaling=module.scaling)

    def _is_conv1d(self, module: str) -> bool:
        return self._base.model_type in _CONV1D_MODEL_TYPES and leaf_name(module) != "lm_head"

    def _check_target(self, module: str) -> Iterator[Finding]:
        if self._config.target_modules is not None and not is_target(self._config, module):
            if self._config.ensure_weight_tying and self._base.is_tied and leaf_name(module) == "lm_head":
                return  # peft adds the pair of the tied output layer by itself
            message = (
                "The module has tensors, but target_modules does not mean it; peft would pass over them "
                "silently."
            )
            yield Finding.error("module-not-targeted", message, where=shown(module), remedy=OWN_CONFIG)

    def _check_shape(
        self, module: str, delta: tuple[int, int], is_transposed: bool, shape: tuple[int, ...] | None
    ) -> Iterator[Finding]:
        where = shown(module)
        if shape is None:
            message = f"The base model has no weight of this name{self._suggest(module)}."
            yield Finding.error("module-unknown", message, where=where, remedy=OTHER_BASE)
            return
        expected = (delta[1], delta[0]) if is_transposed else delta
        if shape != expected:
            message = (
                f"The adapter changes a weight of shape {list(expected)}, the base model's has shape "
                f"{list(shape)}."
            )
            yield Finding.error("shape-mismatch", message, where=where, remedy=OTHER_BASE)
        tensor = self._names.get(f"{module}.weight")
        if tensor is not None:
            yield from check_base_dtype(tensor.info, where)

    def _check_magnitude(self, module: str, tensor: TensorInfo | None, d_out: int) -> Iterator[Finding]:
        where = shown(module)
        if not self._config.use_dora:
            if tensor is not None:
                message = "The tensor is a DoRA magnitude, but adapter_config.json does not say use_dora."
                yield Finding.error("adapter-dora", message, where=shown(tensor.name), remedy=OWN_CONFIG)
            return
        if tensor is None:
            message = "use_dora is set, but the module's magnitude (lora_magnitude_vector) is missing."
            yield Finding.error("tensor-missing", message, where=where, remedy=GATHER)
            return
        yield from check_dtype("lora_magnitude_vector", tensor, where)
        if tensor.shape != (d_out,):
            message = f"The magnitude has shape {list(tensor.shape)}, expected is [{d_out}]."
            yield Finding.error("shape-mismatch", message, where=where, remedy=OTHER_BASE)

    def _check_bias(
        self, module: str, tensor: TensorInfo | None, d_out: int, is_embedding: bool
    ) -> Iterator[Finding]:
        where = shown(module)
        if not self._config.lora_bias:
            if tensor is not None:
                message = "The tensor is a bias of lora_B, but adapter_config.json does not say lora_bias."
                yield Finding.error("adapter-lora-bias", message, where=shown(tensor.name), remedy=OWN_CONFIG)
            return
        if tensor is None:
            if not is_embedding:
                message = "lora_bias is set, but the bias of lora_B is missing."
                yield Finding.error("tensor-missing", message, where=where, remedy=GATHER)
            return
        yield from check_dtype("lora_B.bias", tensor, where)
        base_bias = self._names.get(f"{module}.bias")
        if base_bias is None:
            message = "lora_B has a bias, but the base model's layer has none to which it could be added."
            remedy = "Train with lora_bias=False; peft cannot merge this either."
            yield Finding.error("adapter-lora-bias", message, where=where, remedy=remedy)
        elif tensor.shape != base_bias.info.shape or tensor.shape != (d_out,):
            message = (
                f"lora_B's bias has shape {list(tensor.shape)}, the base's {list(base_bias.info.shape)}."
            )
            yield Finding.error("shape-mismatch", message, where=where, remedy=OTHER_BASE)

    def _suggest(self, module: str) -> str:
        """Name the one base weight with the same last parts, if there is exactly one: a prefix may differ."""
        ending = ".".join(module.split(".")[-4:]) + ".weight"
        similar = [name for name in self._base.tensors if f".{name}".endswith(f".{ending}")]
        return f" (it has {shown(similar[0])})" if len(similar) == 1 else ""
