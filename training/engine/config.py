"""The training configuration: frozen, typed, with the defaults of MISSION D1; all faults come at once."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from registry.artifacts.findings import shown
from training.engine.config_advice import with_advice
from training.engine.errors import ConfigInvalid, Fault
from training.engine.layer_choice import LAYERS, LayerChoice, layers_to_json
from training.engine.settings_rules import (
    FLAG,
    NAMES,
    TEXT,
    Rule,
    choice,
    count,
    number,
    optional,
    read_section,
    unknown_key,
)

DEFAULT_TARGET_MODULES = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
DEFAULT_RANK = 16
METHODS = ("lora", "qlora", "full")
DEFAULT_METHOD = "lora"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraSettings:
    """The adapter's shape.

    Attributes:
        r: Rank (PEFT's name for it).
        lora_alpha: Numerator of the scale; ``alpha / r``, or ``alpha / sqrt(r)`` with ``use_rslora``. When
            only one of r and lora_alpha is given the other follows by alpha = 2r (MISSION B3), so that the
            scale stays.
        lora_dropout: Dropout on the adapter's input, 0 <= p < 1.
        target_modules: Last parts of the names of the adapted modules.
        bias: Only "none" is supported.
        use_rslora: Rank-stabilised scaling (https://arxiv.org/abs/2312.03732).
        use_dora: Train the weights' magnitudes as well (https://arxiv.org/abs/2402.09353). Such an adapter is
            trained and saved, but neither merged nor served.
        layers: Which blocks are adapted: None for all, "last_two_thirds" (against forgetting, MISSION B5), or
            a range.
    """

    r: int = DEFAULT_RANK
    lora_alpha: int = 2 * DEFAULT_RANK
    lora_dropout: float = 0.05
    target_modules: tuple[str, ...] = DEFAULT_TARGET_MODULES
    bias: str = "none"
    use_rslora: bool = False
    use_dora: bool = False
    layers: LayerChoice = None

    @property
    def scaling(self) -> float:
        """Factor on B A: alpha / r, with ``use_rslora`` alpha / sqrt(r)."""
        return self.lora_alpha / (math.sqrt(self.r) if self.use_rslora else self.r)


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimisationSettings:
    """How the adapter is trained.

    Attributes:
        learning_rate: Peak rate of AdamW.
        num_epochs: Passes over the data; may be a fraction. Ignored when ``max_steps`` is given.
        max_steps: Number of optimiser steps; None means ``num_epochs`` decides.
        per_device_batch_size: Rows per forward pass.
        gradient_accumulation_steps: Forward passes per optimiser step; gradients are weighted by trained
            tokens.
        lr_scheduler: "cosine", "linear" or "constant", each after the warm-up.
        warmup_fraction: Part of all steps with a linearly rising rate, 0-1.
        weight_decay: AdamW's decoupled decay.
        max_grad_norm: Gradients are clipped to this norm; 0 switches clipping off.
        dtype: "float32", "bfloat16", "float16" (with a dynamic loss scale, for cards without bfloat16) or
            "auto": bfloat16 where the device has instructions for it, else float32. The adapter's own weights
            are float32 always.
        gradient_checkpointing: Recompute activations in the backward pass: less memory, about a third slower.
        packing: Put several rows behind each other into one sequence of at most ``max_length_tokens``, each
            kept from seeing the others; whether it really is kept is tried out before the first step
            (MISSION D4).
        max_length_tokens: Longer rows are dropped and reported, never cut.
        log_every_steps: Interval of training metrics.
        eval_every_steps: Interval of the held-out loss.
        save_every_steps: Interval of checkpoints.
        early_stopping_patience: Measurements of the held-out loss without an improvement after which training
            stops and the weights of the best one are taken; None never stops.
        max_minutes: Training stops after the step in which this time is over; None sets no limit.
        seed: Of weights, dropout and order.
    """

    learning_rate: float = 2e-4
    num_epochs: float = 2.0
    max_steps: int | None = None
    per_device_batch_size: int = 1
    gradient_accumulation_steps: int = 16
    lr_scheduler: str = "cosine"
    warmup_fraction: float = 0.03
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    dtype: str = "auto"
    gradient_checkpointing: bool = True
    packing: bool = False
    max_length_tokens: int = 2048
    log_every_steps: int = 10
    eval_every_steps: int = 50
    save_every_steps: int = 200
    early_stopping_patience: int | None = None
    max_minutes: float | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSettings:
    """How examples become conversations.

    Attributes:
        system_prompt: Put before examples that have no system message of their own (not before general ones);
            None adds nothing.
        max_examples: Train on a random choice of this many examples, drawn with the seed; None takes all. For
            the small experiment (MISSION D6).
    """

    system_prompt: str | None = None
    max_examples: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PreflightSettings:
    """What is tried out before the first step (MISSION T1-T3).

    Attributes:
        overfit: "auto" makes the model learn a few examples by heart the first time that this base model is
            trained with these versions of the libraries; "always" does so every time.
        overfit_examples: How many examples that are.
        overfit_max_steps: Steps after which the attempt counts as failed.
        num_shown_batches: Batches that are decoded for people to look at.
    """

    overfit: str = "auto"
    overfit_examples: int = 10
    overfit_max_steps: int = 60
    num_shown_batches: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """Everything that decides a training run besides its inputs.

    Attributes:
        method: "lora"; "qlora", the same on a base in 4 bit, for exploring (MISSION B4; needs CUDA and
            bitsandbytes); or "full", all weights of the model.
        lora: The adapter's shape; unused by "full".
        training: How it is trained.
        data: How examples become conversations.
        preflight: What is tried out before the first step.
    """

    method: str = DEFAULT_METHOD
    lora: LoraSettings = field(default_factory=LoraSettings)
    training: OptimisationSettings = field(default_factory=OptimisationSettings)
    data: DataSettings = field(default_factory=DataSettings)
    preflight: PreflightSettings = field(default_factory=PreflightSettings)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> "TrainingConfig":
        """Read a configuration; missing keys take their defaults, unknown ones are refused.

        Raises:
            ConfigInvalid: ``training-config-invalid`` with every fault found.
        """
        faults: list[Fault] = []
        sections: dict[str, dict[str, Any]] = {}
        known = [_METHOD_KEY, *_RULES]
        faults += [unknown_key(shown(name), shown(name), known) for name in raw if name not in known]
        method = _read_method(raw.get(_METHOD_KEY, DEFAULT_METHOD), faults)
        for name, rules in _RULES.items():
            sections[name] = read_section(name, raw.get(name, {}), rules, faults)
        _couple_alpha(sections["lora"], faults)
        if faults:
            faults = [with_advice(fault) for fault in faults]
            listed = "; ".join(f"{fault.where}: {fault.message}" for fault in faults)
            raise ConfigInvalid(
                "training-config-invalid",
                f"The training configuration has {len(faults)} fault(s): {listed}",
                faults=faults,
            )
        return cls(
            method=method,
            lora=LoraSettings(**sections["lora"]),
            training=OptimisationSettings(**sections["training"]),
            data=DataSettings(**sections["data"]),
            preflight=PreflightSettings(**sections["preflight"]),
        )

    def to_json(self) -> dict[str, Any]:
        """Return all values, defaults included; ``from_json`` of it gives an equal configuration."""
        result = asdict(self)
        result["lora"]["target_modules"] = list(self.lora.target_modules)
        result["lora"]["layers"] = layers_to_json(self.lora.layers)
        return result


_METHOD_KEY = "method"
_METHOD = choice(*METHODS)
_RULES: Mapping[str, Mapping[str, Rule]] = {
    "lora": {
        "r": count(1, 1024),
        "lora_alpha": count(1, 65_536),
        "lora_dropout": number(0, 1, high_open=True),
        "target_modules": NAMES,
        "bias": choice("none"),
        "use_rslora": FLAG,
        "use_dora": FLAG,
        "layers": LAYERS,
    },
    "training": {
        "learning_rate": number(0, 1, low_open=True),
        "num_epochs": number(0, 1000, low_open=True),
        "max_steps": optional(count(1)),
        "per_device_batch_size": count(1, 4096),
        "gradient_accumulation_steps": count(1, 4096),
        "lr_scheduler": choice("cosine", "linear", "constant"),
        "warmup_fraction": number(0, 1, high_open=True),
        "weight_decay": number(0, 1),
        "max_grad_norm": number(0, math.inf),
        "dtype": choice("auto", "float32", "bfloat16", "float16"),
        "gradient_checkpointing": FLAG,
        "packing": FLAG,
        "max_length_tokens": count(8, 1_000_000),
        "log_every_steps": count(1),
        "eval_every_steps": count(1),
        "save_every_steps": count(1),
        "early_stopping_patience": optional(count(1)),
        "max_minutes": optional(number(0, 100_000, low_open=True)),
        "seed": count(0, 2**32 - 1),
    },
    "data": {"system_prompt": optional(TEXT), "max_examples": optional(count(1))},
    "preflight": {
        "overfit": choice("auto", "always"),
        "overfit_examples": count(1, 100),
        "overfit_max_steps": count(1, 10_000),
        "num_shown_batches": count(0, 20),
    },
}


def _read_method(value: Any, faults: list[Fault]) -> str:
    try:
        return str(_METHOD.read(value))
    except ValueError:
        message = f"is {shown(repr(value))}, must be {_METHOD.expected}"
        faults.append(Fault(code="invalid-value", message=message, where=_METHOD_KEY))
        return DEFAULT_METHOD


def _couple_alpha(lora: dict[str, Any], faults: list[Fault]) -> None:
    """Keep alpha = 2r when only one of the two is given."""
    if "r" in lora and "lora_alpha" not in lora:
        lora["lora_alpha"] = 2 * lora["r"]
    elif "lora_alpha" in lora and "r" not in lora:
        if lora["lora_alpha"] % 2:
            remedy = "Give r as well."
            message = f"is odd and r is not given, so r = alpha / 2 is no whole number. {remedy}"
            faults.append(
                Fault(code="invalid-value", message=message, where="lora.lora_alpha", remedy=remedy)
            )
        lora["r"] = max(1, lora["lora_alpha"] // 2)
