"""What the fields of an adapter_config.json mean for merging and serving: one finding per field that matters.

Sources: peft 0.21 `LoraConfig`, vLLM 0.32 `lora/peft_helper.py`. A field that can change weights in a way
that is not implemented exactly is refused by name, never ignored; one that is merged exactly, but that vLLM
cannot serve beside the base model, is left to `adapter_serving`. Standard library only.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from registry.artifacts.adapter_config import CONFIG_FILE, AdapterConfig, AdapterKind
from registry.artifacts.adapter_serving import describe_serving, describe_variants
from registry.artifacts.base_hint import describe_base_hint
from registry.artifacts.findings import Finding, shown, shown_list
from registry.artifacts.module_patterns import HEAD_NAMES, find_pattern_fault, leaf_name

_PLAIN = "Train a plain LoRA (peft LoraConfig with this field left out) and submit that."
_CONVERT_INIT = (
    "Convert it to a plain LoRA when saving: model.save_pretrained(folder, "
    "path_initial_model_for_weight_conversion=…) "
    "(peft, 'PiSSA' and 'OLoRA' in the LoRA guide), then submit the result."
)
# peft converts the others, not LoftQ, whose base is the quantised remainder.
_REGISTER_CHANGED_BASE = (
    "Save the changed base (model.unload().save_pretrained(folder) before training) and register it as the "
    "base "
    "model; with init_lora_weights set to true the adapter is a plain LoRA on it."
)
# Initialisations that only set the first values of A and B; the saved adapter is a plain LoRA.
_PLAIN_INITS = frozenset({"gaussian", "eva", "orthogonal", "mica", "true", "false"})
_BASE_CHANGING_INITS = {
    "pissa": "pissa",
    "olora": "olora",
    "corda": "corda",
    "loftq": "loftq",
    "lora_ga": "lora-ga",
}
# Attention projections of image (diffusion) models; no language model in transformers has them.
_IMAGE_TARGETS = frozenset({"to_q", "to_k", "to_v"})


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A field whose value (unless it is neutral) refuses the adapter."""

    name: str
    code: str
    message: str
    is_neutral: Callable[[Any], bool]
    remedy: str = _PLAIN


def _is_falsy(value: Any) -> bool:
    return not value


_REFUSALS = (
    _Refusal(
        "layer_replication",
        "adapter-layer-replication",
        "It repeats layers of the base model, so the model has another depth.",
        _is_falsy,
    ),
    _Refusal(
        "kasa_config",
        "adapter-kasa",
        "It is a KaSA adapter: the base weights were truncated for it.",
        _is_falsy,
    ),
    _Refusal(
        "enable_lora",
        "adapter-enable-lora",
        "It is a merged-linear LoRA of early peft: parts of a fused projection are left out.",
        _is_falsy,
    ),
    _Refusal(
        "alora_invocation_tokens",
        "adapter-alora",
        "It is an Activated LoRA: it acts only after certain tokens, so it cannot be merged.",
        lambda value: value is None,
    ),
    _Refusal("arrow_config", "adapter-arrow", "It routes between several adapters (Arrow).", _is_falsy),
    _Refusal("use_bdlora", "adapter-bdlora", "It is a block-diagonal LoRA.", _is_falsy),
    _Refusal(
        "use_qalora", "adapter-qalora", "It is a QA-LoRA: it pools the inputs of quantised layers.", _is_falsy
    ),
    _Refusal("monteclora_config", "adapter-monteclora", "It samples its weights (MonteCLoRA).", _is_falsy),
    _Refusal("megatron_config", "adapter-megatron", "It was made for Megatron's parallel layers.", _is_falsy),
)

_KIND_MESSAGES = {
    AdapterKind.MLX: (
        "adapter-mlx",
        "This is an mlx-lm adapter, not peft's: its tensors have other names and its scale is already "
        "alpha / r.",
        "Fuse it with mlx_lm.fuse, or convert it to peft (transpose lora_a and lora_b, lora_alpha = "
        "scale x rank), and submit that.",
    ),
    AdapterKind.ADAPTERHUB: (
        "adapter-adapterhub",
        "This is an AdapterHub adapter (bottleneck layers between the model's own), not a LoRA of peft.",
        "It cannot be merged into the weights. Train a LoRA with peft on the same data.",
    ),
    AdapterKind.UNKNOWN: (
        "adapter-not-peft",
        "adapter_config.json has no peft_type, r or lora_alpha: it was not written by peft.",
        "Save the adapter with peft: model.save_pretrained(folder).",
    ),
}


def check_config(
    config: AdapterConfig,
    *,
    architectures: tuple[str, ...] = (),
    is_tied: bool | None = None,
    is_adapter_form_needed: bool = True,
) -> list[Finding]:
    """Return everything that the config alone says about the adapter.

    Args:
        config: parsed adapter_config.json.
        architectures: of the chosen base model; empty when no base is at hand.
        is_tied: whether the base's input and output embeddings are one matrix; None when no base is at hand.
        is_adapter_form_needed: whether vLLM must be able to serve base + adapter as well; what it cannot
            serve in that form is refused then.
    """
    if config.kind in _KIND_MESSAGES:
        code, message, remedy = _KIND_MESSAGES[config.kind]
        return [Finding.error(code, message, where=CONFIG_FILE, remedy=remedy)]
    if config.kind is AdapterKind.OTHER_PEFT:
        name = shown(config.peft_type)
        message = (
            f"This is a {name} adapter of peft; only LORA can be merged into the weights and served by vLLM."
        )
        remedy = "Train a LoRA (peft LoraConfig) on the same data."
        return [Finding.error("adapter-not-lora", message, where=_where("peft_type"), remedy=remedy)]
    return [
        *config.faults,
        *_check_task(config, architectures),
        *_check_refusals(config),
        *_check_combinations(config),
        *_check_init(config),
        *describe_variants(config),
        *(describe_serving(config, architectures=architectures) if is_adapter_form_needed else ()),
        *_check_targets(config, is_tied=is_tied),
        *_check_patterns(config),
        *_check_scaling(config),
        *_check_unknown(config),
        describe_base_hint(config),
    ]


def _where(name: str) -> str:
    return f"{CONFIG_FILE}: {name}"


def _check_refusals(config: AdapterConfig) -> Iterator[Finding]:
    for rule in _REFUSALS:
        value = config.raw.get(rule.name)
        if not rule.is_neutral(value):
            yield Finding.error(rule.code, rule.message, where=_where(rule.name), remedy=rule.remedy)


def _check_combinations(config: AdapterConfig) -> Iterator[Finding]:
    """Find fields that peft itself refuses together; such a file was not written by it."""
    clashes = []
    if config.use_dora and config.lora_bias:
        clashes.append(("lora_bias", "use_dora and lora_bias"))
    for name in ("use_dora", "lora_bias", "fan_in_fan_out"):
        if config.target_parameters and config.raw.get(name):
            clashes.append((name, f"target_parameters and {name}"))
    for name, text in clashes:
        message = f"{text} cannot be used together: peft refuses it."
        remedy = "Submit the adapter_config.json that was written with these weights."
        yield Finding.error("adapter-combination-invalid", message, where=_where(name), remedy=remedy)


def _check_task(config: AdapterConfig, architectures: tuple[str, ...]) -> Iterator[Finding]:
    wrapped = config.wrapped_class or ""
    if wrapped.startswith("PeftModel"):
        message = "The adapter was put on a model that already had one (get_peft_model called twice)."
        remedy = "Merge the first adapter into the base and register that, or train once on the plain base."
        yield Finding.error("adapter-double-wrapped", message, where=_where("auto_mapping"), remedy=remedy)
    if config.task_type == "CAUSAL_LM":
        return
    remedy = "Submit an adapter that was trained on a causal language model."
    if config.task_type is not None:
        message = (
            f"It was trained for the task {shown(config.task_type)}; only CAUSAL_LM (text generation) can "
            "be evaluated."
        )
        yield Finding.error("adapter-not-causal-lm", message, where=_where("task_type"), remedy=remedy)
    elif (
        wrapped
        and not wrapped.startswith("PeftModel")
        and not wrapped.endswith(("ForCausalLM", "LMHeadModel"))
    ):
        if wrapped not in architectures:
            message = f"It was trained on a {shown(wrapped)}, which is no causal language model."
            yield Finding.error("adapter-not-causal-lm", message, where=_where("auto_mapping"), remedy=remedy)
    elif _IMAGE_TARGETS.intersection(config.target_modules or ()):
        message = (
            f"It adapts {shown_list(config.target_modules or ())}, as image (diffusion) models have them; "
            "no language model does."
        )
        yield Finding.error("adapter-not-causal-lm", message, where=_where("target_modules"), remedy=remedy)
    else:
        message = (
            "task_type is null, so the file does not say that this is a language model's adapter; the "
            "shapes decide."
        )
        yield Finding.warning("adapter-task-unknown", message, where=_where("task_type"))


def _check_init(config: AdapterConfig) -> Iterator[Finding]:
    init = config.init_lora_weights
    if not isinstance(init, str) or init.lower() in _PLAIN_INITS:
        return
    for prefix, code in _BASE_CHANGING_INITS.items():
        if init.lower().startswith(prefix):
            message = f"init_lora_weights is {shown(init)!r}: the base weights were changed for the training."
            remedy = _REGISTER_CHANGED_BASE if prefix == "loftq" else _CONVERT_INIT
            yield Finding.error(
                f"adapter-init-{code}", message, where=_where("init_lora_weights"), remedy=remedy
            )
            return
    message = (
        f"init_lora_weights is {shown(init)!r}, which is not known; it may have changed the base weights."
    )
    yield Finding.error(
        "adapter-init-unknown", message, where=_where("init_lora_weights"), remedy=_CONVERT_INIT
    )


def _check_targets(config: AdapterConfig, *, is_tied: bool | None) -> Iterator[Finding]:
    names = config.target_modules if isinstance(config.target_modules, tuple) else ()
    leaves = {leaf_name(name) for name in names}
    heads = sorted(leaves & HEAD_NAMES)
    if heads and is_tied:
        message = (
            f"It adapts {', '.join(heads)}, which is the same matrix as the input embedding in this base "
            "model. "
            "The merged model gets an output layer of its own (tie_word_embeddings false), so that the "
            "embedding "
            "stays as it is."
        )
        yield Finding.info("adapter-lm-head-tied", message, where=_where("target_modules"))
    elif heads:
        message = (
            f"It adapts the output layer ({', '.join(heads)}); whether vLLM can serve that depends on the "
            "model class."
        )
        yield Finding.warning("adapter-lm-head", message, where=_where("target_modules"))
    if "target_modules" not in config.raw:
        message = "The field is missing; peft writes it always and vLLM refuses to load without it."
        remedy = "Save the adapter again with peft: model.save_pretrained(folder)."
        yield Finding.error("adapter-targets-missing", message, where=_where("target_modules"), remedy=remedy)
    elif config.target_modules is None:
        message = (
            "target_modules is null, so modules that should have tensors and have none cannot be noticed."
        )
        yield Finding.warning("adapter-targets-unknown", message, where=_where("target_modules"))


def _check_patterns(config: AdapterConfig) -> Iterator[Finding]:
    patterns = [("rank_pattern", name) for name in config.rank_pattern]
    patterns += [("alpha_pattern", name) for name in config.alpha_pattern]
    patterns += [("layers_pattern", name) for name in config.layers_pattern]
    for name in ("target_modules", "exclude_modules"):
        value = getattr(config, name)
        if isinstance(value, str) and value:
            patterns.append((name, value))
    for name, pattern in patterns:
        fault = find_pattern_fault(pattern)
        if fault is not None:
            message = f"The pattern {shown(pattern)!r} cannot be used: {shown(fault)}."
            remedy = "Write it more simply, or list the modules by name."
            yield Finding.error("adapter-pattern-invalid", message, where=_where(name), remedy=remedy)


def _check_scaling(config: AdapterConfig) -> Iterator[Finding]:
    if not _is_number(config.raw.get("lora_alpha")):
        return  # a fault already
    alphas = [config.lora_alpha, *config.alpha_pattern.values()]
    if not all(alphas):
        message = "An alpha is 0, so the adapter changes nothing there."
        yield Finding.error(
            "adapter-alpha-zero", message, where=_where("lora_alpha"), remedy="Set the alpha of the training."
        )
    elif min(alphas) < 0:
        message = "lora_alpha is negative: the adapter is subtracted."
        yield Finding.warning("adapter-alpha-negative", message, where=_where("lora_alpha"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_unknown(config: AdapterConfig) -> Iterator[Finding]:
    names = sorted(name for name, value in config.unknown.items() if value not in (None, False, [], {}, ""))
    if names:
        message = (
            f"Fields that no known peft version writes: {shown_list(names)}. They are kept; check that none "
            "changes weights."
        )
        yield Finding.warning("adapter-config-unknown-field", message, where=CONFIG_FILE)
