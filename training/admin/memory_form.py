"""The form of the page that estimates memory: what stands in the address, and the fields that show it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import QueryDict

from registry.models import BaseModel
from training.engine.config import TrainingConfig
from training.engine.errors import ConfigInvalid
from training.engine.layer_choice import select_layers
from training.engine.memory.request import ALL_METHODS, EstimateRequest
from training.engine.memory.wording import METHOD_NAMES
from training.models import TrainingRun

MAX_OFFERED: Final = 500
_WHOLE_NUMBERS: Final = ("tokens", "batch_size", "rank", "layers")
_SEPARATORS: Final = re.compile(r"[,;\n]")
_SWITCHES: Final = {"on": True, "off": False}
_DEFAULTS: Final = EstimateRequest().to_json()
NAMES: Final = ("base_model", *_DEFAULTS)
"""Parameters of the address, named as in the API."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field. `options` are (value, text, whether it is chosen); without any it is a box for text."""

    name: str
    label: str
    value: str
    help: str = ""
    options: tuple[tuple[str, str, bool], ...] = ()


def texts_of_address(sent: QueryDict) -> dict[str, str]:
    """What stands in the fields: what was sent, else the defaults. A parameter that is given several times is
    one list.
    """
    return {name: ", ".join(sent.getlist(name)) if name in sent else _show(name) for name in NAMES}


def request_of_texts(texts: Mapping[str, str]) -> dict[str, Any]:
    """The request that the fields say, unchecked: what is no number stays a text and is refused as such."""
    lists = {name: _split(texts[name]) for name in ("cards", "target_modules")}
    numbers = {name: _number(texts[name]) for name in _WHOLE_NUMBERS}
    switches = {name: _SWITCHES.get(texts[name], texts[name]) for name in ("checkpointing", "short_moments")}
    return {"method": texts["method"], **lists, **numbers, **switches}


def texts_of_run(run: TrainingRun) -> dict[str, str]:
    """The parameters of the page for what a training run does; those that differ from the defaults."""
    texts = {"base_model": run.base_model.name}
    try:
        config = TrainingConfig.from_json(run.config)
        layers = select_layers(config.lora.layers, int(run.base_model.summary.get("num_layers") or 0))
    except (ConfigInvalid, ValueError, TypeError):
        # Configurations of earlier versions need not be readable; the model alone is enough for the page.
        return texts
    training, lora = config.training, config.lora
    values = {
        "tokens": training.max_length_tokens,
        "batch_size": training.per_device_batch_size,
        "rank": lora.r,
        "layers": len(layers) if layers else None,
        "target_modules": list(lora.target_modules),
        "checkpointing": training.gradient_checkpointing,
    }
    return texts | {name: _shown(value) for name, value in values.items() if value != _DEFAULTS[name]}


def build_fields(texts: Mapping[str, str], base_models: Sequence[BaseModel]) -> tuple[Field, ...]:
    """The fields in the order in which they are shown."""
    models = [(row.name, f"{row.name} ({_short(row.num_parameters)})") for row in base_models[:MAX_OFFERED]]
    chosen = texts["base_model"]
    if chosen not in dict(models):
        models.insert(0, (chosen, chosen))
    methods = [(ALL_METHODS, "all three"), *METHOD_NAMES.items()]
    switches = [("on", "on"), ("off", "off")]
    return (
        _choice(texts, "base_model", "Base model", models),
        _box(texts, "cards", "Cards", "24GB, 80GB x 8: as on the label, 1 GB is 10^9 bytes"),
        _box(texts, "tokens", "Tokens per row"),
        _box(texts, "batch_size", "Batch", "rows per forward pass; accumulation costs no memory"),
        _box(texts, "rank", "Rank of the LoRA"),
        _box(texts, "layers", "Adapted blocks", "empty: all"),
        _choice(texts, "method", "Method", methods),
        _choice(texts, "checkpointing", "Gradient checkpointing", switches),
        _choice(texts, "short_moments", "Adam's moments in bf16", switches),
        _box(texts, "target_modules", "Adapted modules"),
    )


def _show(name: str) -> str:
    return _shown(_DEFAULTS.get(name))


def _shown(value: Any) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "on" if value else "off"
        case list():
            return ", ".join(map(str, value))
    return str(value)


def _split(text: str) -> list[str]:
    return [part.strip() for part in _SEPARATORS.split(text) if part.strip()]


def _number(text: str) -> int | str | None:
    plain = text.strip()
    if not plain:
        return None
    return int(plain) if plain.isascii() and plain.isdigit() and len(plain) <= 20 else plain


def _short(num_parameters: int) -> str:
    for size, unit in ((10**9, "B"), (10**6, "M")):
        if num_parameters >= size:
            return f"{num_parameters / size:.3g} {unit}"
    return str(num_parameters)


def _box(texts: Mapping[str, str], name: str, label: str, help_text: str = "") -> Field:
    return Field(name=name, label=label, value=texts[name], help=help_text)


def _choice(texts: Mapping[str, str], name: str, label: str, offered: Sequence[tuple[str, str]]) -> Field:
    options = tuple((value, text, value == texts[name]) for value, text in offered)
    return Field(name=name, label=label, value=texts[name], options=options)
