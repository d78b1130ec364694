"""Parses adapter_config.json as tools really write it: peft 0.2 to 0.21, MLX, AdapterHub, home-made savers.

Parsing is tolerant: a null means the default, unknown names are kept, and faults are collected as findings
instead of stopping at the first. What the values mean for merging and serving is judged in `adapter_rules`.
Standard library only.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from registry.artifacts.errors import AdapterConfigError
from registry.artifacts.findings import Finding, shown
from registry.artifacts.json_files import JsonFileError, load_json_object

CONFIG_FILE = "adapter_config.json"
MAX_RANK = 65_536

# Every field that peft wrote into a LoRA config from 0.2 to 0.21, with the two of early peft that are gone.
_KNOWN_FIELDS = frozenset(
    """
    alora_invocation_tokens alpha_pattern arrow_config auto_mapping base_model_name_or_path bias corda_config
    enable_lora ensure_weight_tying eva_config exclude_modules fan_in_fan_out inference_mode init_lora_weights
    kasa_config layer_replication layers_pattern layers_to_transform loftq_config lora_alpha lora_bias
    lora_dropout lora_ga_config megatron_config megatron_core merge_weights modules_to_save monteclora_config
    peft_type peft_version qalora_group_size r rank_pattern revision runtime_config target_modules
    target_parameters task_type trainable_token_indices use_bdlora use_dora use_qalora use_rslora
    velora_config
    """.split()  # noqa: SIM905 (a list of forty quoted names is harder to read)
)


class AdapterKind(StrEnum):
    """Which tool's schema a config follows."""

    LORA = "lora"
    OTHER_PEFT = "other-peft"
    MLX = "mlx"
    ADAPTERHUB = "adapterhub"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterConfig:
    """An adapter_config.json; the fields of LoRA have peft's names and defaults.

    Attributes:
        kind: whose schema it is; for all but LORA the LoRA fields hold defaults that mean nothing.
        peft_type: as written, upper case; None when absent.
        task_type: for example "CAUSAL_LM"; None when null or absent.
        base_hint: base_model_name_or_path, only a hint: often a local path or a quantised copy; None when
            null.
        revision_hint: revision of the base; None when null.
        peft_version: stated from peft 0.18 on; None before.
        r: rank of modules without a pattern; 0 when missing or faulty (see faults).
        lora_alpha: numerator of the scaling; 0 when missing or faulty (see faults), since guessing it scales
            the adapter wrongly.
        use_rslora: whether the scaling is alpha / sqrt(r) instead of alpha / r
            (arXiv:2312.03732).
        target_modules: names, or one regular expression (str), or None.
        exclude_modules: likewise.
        rank_pattern: regular expression to rank, first match counts.
        alpha_pattern: regular expression to alpha, first match counts.
        layers_to_transform: layer numbers; None means all.
        layers_pattern: names of the layer list; empty means any.
        init_lora_weights: True, False or the name of an initialisation.
        use_dora: whether the weights' magnitudes are trained apart (arXiv:2402.09353).
        bias: which biases of the base were trained: "none", "all" or "lora_only".
        lora_bias: whether the lora_B layers have biases.
        modules_to_save: names (endings) of modules that replace those of the base.
        trainable_token_indices: rows of an embedding that replace those of the base, by the module's name;
            the key None means the input embedding.
        target_parameters: names (endings) of bare parameters that are adapted, fused experts for example.
        ensure_weight_tying: whether input and output embedding were kept one matrix in training.
        wrapped_class: auto_mapping's base_model_class; None when there is no auto_mapping.
        raw: the whole file.
        unknown: fields that no known peft version writes.
        faults: errors of type and value found while parsing.
    """

    kind: AdapterKind
    peft_type: str | None = None
    task_type: str | None = None
    base_hint: str | None = None
    revision_hint: str | None = None
    peft_version: str | None = None
    r: int = 0
    lora_alpha: float = 0.0
    use_rslora: bool = False
    target_modules: tuple[str, ...] | str | None = None
    exclude_modules: tuple[str, ...] | str | None = None
    rank_pattern: Mapping[str, int] = field(default_factory=dict)
    alpha_pattern: Mapping[str, float] = field(default_factory=dict)
    layers_to_transform: tuple[int, ...] | None = None
    layers_pattern: tuple[str, ...] = ()
    init_lora_weights: bool | str = True
    use_dora: bool = False
    bias: str = "none"
    lora_bias: bool = False
    modules_to_save: tuple[str, ...] = ()
    trainable_token_indices: Mapping[str | None, tuple[int, ...]] = field(default_factory=dict)
    target_parameters: tuple[str, ...] = ()
    ensure_weight_tying: bool = False
    wrapped_class: str | None = None
    raw: Mapping[str, Any] = field(default_factory=dict)
    unknown: Mapping[str, Any] = field(default_factory=dict)
    faults: tuple[Finding, ...] = ()


def read_adapter_config(path: Path) -> AdapterConfig:
    """Read and parse an adapter_config.json.

    Raises:
        AdapterConfigError: the file is missing or is not one strict JSON object.
    """
    try:
        return parse_adapter_config(load_json_object(path))
    except JsonFileError as error:
        raise AdapterConfigError(f"{path.name} cannot be read: {error}.") from error
    except OSError as error:
        raise AdapterConfigError(f"{path.name} cannot be read: {error.strerror}.") from error


def parse_adapter_config(raw: Mapping[str, Any]) -> AdapterConfig:
    """Parse the object of an adapter_config.json; never raises, see `AdapterConfig.faults`."""
    kind = classify_config(raw)
    reader = _FieldReader(raw)
    common = AdapterConfig(
        kind=kind,
        raw=MappingProxyType(dict(raw)),
        peft_type=reader.text("peft_type"),
        task_type=reader.text("task_type"),
        base_hint=reader.text("base_model_name_or_path"),
    )
    if kind is not AdapterKind.LORA:
        return common
    reader.not_null("bias", '"none"')
    return replace(
        common,
        revision_hint=reader.text("revision"),
        peft_version=reader.text("peft_version"),
        r=reader.rank("r"),
        lora_alpha=reader.alpha("lora_alpha"),
        use_rslora=reader.flag("use_rslora"),
        target_modules=reader.names_or_pattern("target_modules"),
        exclude_modules=reader.names_or_pattern("exclude_modules"),
        rank_pattern=reader.pattern_of("rank_pattern", is_rank=True),
        alpha_pattern=reader.pattern_of("alpha_pattern", is_rank=False),
        layers_to_transform=reader.layers("layers_to_transform"),
        layers_pattern=reader.names("layers_pattern"),
        init_lora_weights=reader.flag_or_text("init_lora_weights"),
        use_dora=reader.flag("use_dora"),
        bias=reader.bias("bias"),
        lora_bias=reader.flag("lora_bias"),
        modules_to_save=reader.names("modules_to_save"),
        trainable_token_indices=reader.token_indices("trainable_token_indices"),
        target_parameters=reader.names("target_parameters"),
        ensure_weight_tying=reader.flag("ensure_weight_tying"),
        wrapped_class=_wrapped_class(raw.get("auto_mapping")),
        unknown=MappingProxyType({name: value for name, value in raw.items() if name not in _KNOWN_FIELDS}),
        faults=tuple(reader.faults),
    )


def classify_config(raw: Mapping[str, Any]) -> AdapterKind:
    """Return whose schema an adapter_config.json follows, by the names that only one tool writes."""
    peft_type = raw.get("peft_type")
    if isinstance(peft_type, str) and peft_type:
        return AdapterKind.LORA if peft_type.upper() == "LORA" else AdapterKind.OTHER_PEFT
    if isinstance(raw.get("lora_parameters"), dict) or "fine_tune_type" in raw:
        return AdapterKind.MLX
    if isinstance(raw.get("config"), dict) or {"model_class", "hidden_size"} <= raw.keys():
        return AdapterKind.ADAPTERHUB
    return AdapterKind.UNKNOWN


def _wrapped_class(auto_mapping: Any) -> str | None:
    name = auto_mapping.get("base_model_class") if isinstance(auto_mapping, dict) else None
    return name if isinstance(name, str) else None


class _FieldReader:
    """Reads typed fields out of the raw object; a null is the default, a wrong type becomes a fault."""

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self.faults: list[Finding] = []

    def _fault(self, name: str, expected: str) -> None:
        message = f"{name} is {shown(self.raw.get(name))!r}; expected is {expected}."
        remedy = "Save the adapter again with peft, or correct the field."
        self.faults.append(
            Finding.error(
                "adapter-config-field-invalid", message, where=f"{CONFIG_FILE}: {name}", remedy=remedy
            )
        )

    def text(self, name: str) -> str | None:
        value = self.raw.get(name)
        if value is None or isinstance(value, str):
            return value or None
        self._fault(name, "a text or null")
        return None

    def not_null(self, name: str, expected: str) -> None:
        if name in self.raw and self.raw[name] is None:  # vLLM compares with the text and refuses a null
            self._fault(name, expected)

    def flag(self, name: str) -> bool:
        value = self.raw.get(name)
        if value is None or isinstance(value, bool):
            return bool(value)
        self._fault(name, "true, false or null")
        return False

    def flag_or_text(self, name: str) -> bool | str:
        value = self.raw.get(name)
        if value is None:
            return True
        if isinstance(value, bool | str):
            return value
        self._fault(name, "true, false or the name of an initialisation")
        return True

    def rank(self, name: str) -> int:
        value = self.raw.get(name)
        if isinstance(value, int) and _is_rank(value):
            return value
        self._fault(name, f"a whole number from 1 to {MAX_RANK}")
        return 0

    def alpha(self, name: str) -> float:
        value = self.raw.get(name)
        if isinstance(value, int | float) and _is_finite(value):
            return float(value)
        self._fault(name, "a finite number")
        return 0.0

    def names(self, name: str) -> tuple[str, ...]:
        value = self.names_or_pattern(name)
        return (value,) if isinstance(value, str) else value or ()

    def names_or_pattern(self, name: str) -> tuple[str, ...] | str | None:
        value = self.raw.get(name)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
        self._fault(name, "a list of names, a regular expression or null")
        return None

    def pattern_of(self, name: str, *, is_rank: bool) -> Mapping[str, Any]:
        value = self.raw.get(name)
        is_valid = _is_rank if is_rank else _is_finite
        if value is None:
            return MappingProxyType({})
        if isinstance(value, dict) and all(map(is_valid, value.values())):
            return MappingProxyType(dict(value))
        self._fault(name, f"an object from module patterns to {'ranks' if is_rank else 'numbers'}")
        return MappingProxyType({})

    def bias(self, name: str) -> str:
        value = self.raw.get(name)
        if value in ("none", "all", "lora_only"):
            return str(value)
        if value is not None and value is not False:  # a null has its own fault
            self._fault(name, '"none", "all" or "lora_only"')
        return "none"

    def token_indices(self, name: str) -> Mapping[str | None, tuple[int, ...]]:
        value = self.raw.get(name)
        by_module: Any = {None: value} if isinstance(value, list) else value
        if not by_module:
            return MappingProxyType({})
        if isinstance(by_module, dict) and all(map(_are_token_indices, by_module.values())):
            return MappingProxyType({module: tuple(indices) for module, indices in by_module.items()})
        self._fault(name, "a list of token numbers, or an object from module names to such lists")
        return MappingProxyType({})

    def layers(self, name: str) -> tuple[int, ...] | None:
        value = self.raw.get(name)
        listed = [value] if isinstance(value, int) else value
        if listed is None or listed == []:
            return None
        if isinstance(listed, list) and all(
            isinstance(item, int) and not isinstance(item, bool) for item in listed
        ):
            return tuple(listed)
        self._fault(name, "a list of layer numbers, one number or null")
        return None


def _are_token_indices(value: Any) -> bool:
    """Return whether the value is a list of distinct row numbers, at least one."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(item, int) and not isinstance(item, bool) and item >= 0 for item in value)
        and len(set(value)) == len(value)
    )


def _is_rank(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MAX_RANK


def _is_finite(value: Any) -> bool:
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(float(value))
    except OverflowError:  # a whole number with hundreds of digits
        return False
