"""Which of a model's blocks are adapted: all, the last two thirds, or a range (MISSION B5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from training.engine.errors import ConfigInvalid
from training.engine.settings_rules import Rule

LAST_TWO_THIRDS: Final = "last_two_thirds"


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRange:
    """Blocks from ``first`` to ``last``, counted from 0, both included; 0 <= first <= last."""

    first: int
    last: int


LayerChoice = LayerRange | Literal["last_two_thirds"] | None
"""None adapts every block."""


def select_layers(choice: LayerChoice, num_layers: int) -> tuple[int, ...] | None:
    """Return the numbers of the adapted blocks, counted from 0; None for all.

    The last two thirds are the nearest whole number of blocks: 21 of 32, 20 of 30, 1 of 2.

    Args:
        choice: As configured.
        num_layers: Blocks of the model, at least 1.

    Raises:
        ConfigInvalid: ``layers-out-of-range`` when a range reaches beyond the model.
    """
    if choice is None:
        return None
    if isinstance(choice, LayerRange):
        if choice.last >= num_layers:
            raise ConfigInvalid(
                "layers-out-of-range",
                f"lora.layers names blocks {choice.first} to {choice.last}; the model has {num_layers}, "
                f"numbered 0 to {num_layers - 1}.",
            )
        return tuple(range(choice.first, choice.last + 1))
    # n/3 never ends in .5, so the nearest whole number is unambiguous.
    return tuple(range(round(num_layers / 3), num_layers))


def layers_to_json(choice: LayerChoice) -> str | dict[str, int] | None:
    """Return the form used in configurations."""
    return {"first": choice.first, "last": choice.last} if isinstance(choice, LayerRange) else choice


def _read_layers(value: Any) -> LayerChoice:
    if value is None or value == LAST_TWO_THIRDS:
        return None if value is None else "last_two_thirds"
    if not isinstance(value, Mapping) or value.keys() != {"first", "last"}:
        raise ValueError
    first, last = value["first"], value["last"]
    if not all(isinstance(item, int) and not isinstance(item, bool) for item in (first, last)):
        raise ValueError
    if not 0 <= first <= last:
        raise ValueError
    return LayerRange(first=first, last=last)


LAYERS: Final = Rule(f'null, "{LAST_TWO_THIRDS}" or {{"first": i, "last": j}} with 0 <= i <= j', _read_layers)
