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
LABELS: Final = {
    "base_model": "Base model",
    "cards": "Cards",
    "tokens": "Tokens per row",
    "batch_size": "Batch",
    "rank": "Rank of the LoRA",
    "layers": "Adapted blocks",
    "method": "Method",
    "checkpointing": "Gradient checkpointing",
    "short_moments": "Adam's moments in bf16",
    "target_modules": "Adapted modules",
}
"""Of the fields, in the order in which they are shown."""
_HELP: Final = {
    "cards": "24GB, 80GB x 8: as on the label, 1 GB is 10^9 bytes",
    "batch_size": "rows per forward pass; accumulation costs no memory",
    "layers": "empty: all",
}


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
    one list; what is left empty takes its default.
    """
    return {name: ", ".join(sent.getlist(name)).strip() or _shown(_DEFAULTS.get(name)) for name in NAMES}


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
    models = [(row.name, f"{row.name} ({_short(row.num_parameters)})") for row in base_models]
    chosen = texts["base_model"]
    if chosen not in dict(models):
        models.insert(0, (chosen, chosen))
    switches = [("on", "on"), ("off", "off")]
    offered = {
        "base_model": models,
        "method": [(ALL_METHODS, "all three"), *METHOD_NAMES.items()],
        "checkpointing": switches,
        "short_moments": switches,
    }
    return tuple(
        Field(
            name=name,
            label=label,
            value=texts[name],
            help=_HELP.get(name, ""),
            options=tuple((value, text, value == texts[name]) for value, text in offered.get(name, ())),
        )
        for name, label in LABELS.items()
    )


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
