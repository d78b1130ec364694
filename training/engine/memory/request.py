"""What an estimate is asked for, as people write it: command line, body of a request, address of a page."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from training.engine.config import DEFAULT_RANK, DEFAULT_TARGET_MODULES
from training.engine.errors import ConfigInvalid, Fault
from training.engine.memory.cards import Card, read_cards
from training.engine.memory.estimate import METHODS, MemoryRequest
from training.engine.memory.model_shape import ModelShape
from training.engine.settings_rules import FLAG, NAMES, Rule, choice, count, optional, read_section

ALL_METHODS: Final = "all"
DEFAULT_TOKENS: Final = 2048
MAX_TOKENS: Final = 1_000_000
MAX_BATCH_SIZE: Final = 4096
MAX_RANK: Final = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateRequest:
    """A training to be weighed with one method or all of them, on some cards.

    Attributes:
        method: full, lora, qlora or all.
        cards: To be looked at; empty when only the ledger is wanted.
        tokens: Per row.
        batch_size: Rows per forward pass on one card.
        rank: Of the LoRA.
        target_modules: Of the LoRA.
        layers: Adapted blocks; None adapts all.
        checkpointing: Whether activations are recomputed in the backward pass.
        short_moments: Whether Adam's moments are bf16.
    """

    method: str = ALL_METHODS
    cards: tuple[Card, ...] = ()
    tokens: int = DEFAULT_TOKENS
    batch_size: int = 1
    rank: int = DEFAULT_RANK
    target_modules: tuple[str, ...] = DEFAULT_TARGET_MODULES
    layers: int | None = None
    checkpointing: bool = True
    short_moments: bool = False

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> "EstimateRequest":
        """Read a request; missing keys take their defaults, unknown ones are refused.

        Raises:
            ConfigInvalid: ``memory-request-invalid`` with every fault found.
        """
        values, faults = _read_values(raw)
        if faults:
            raise _invalid(faults)
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return all values, defaults included; ``from_json`` of it gives an equal request."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        cards = [card.label for card in self.cards]
        return {**values, "cards": cards, "target_modules": list(self.target_modules)}

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that are meant."""
        return METHODS if self.method == ALL_METHODS else (self.method,)

    def for_method(self, method: str) -> MemoryRequest:
        """Return the training with one of the methods, on a single card."""
        return MemoryRequest(
            method=method,
            batch_size=self.batch_size,
            length_tokens=self.tokens,
            rank=self.rank,
            target_modules=self.target_modules,
            num_lora_layers=self.layers,
            has_checkpointing=self.checkpointing,
            has_short_moments=self.short_moments,
        )

    def check_against(self, shape: ModelShape) -> None:
        """Check what depends on the model.

        Raises:
            ConfigInvalid: ``memory-request-invalid`` with every fault: ``layers-out-of-range`` and
                ``target-module-unknown``. Full fine-tuning alone is asked as well: one of the changes
                suggested for it is a LoRA.
        """
        faults = []
        if self.layers is not None and self.layers > shape.num_layers:
            message = f"is {self.layers}; the model has {shape.num_layers} blocks"
            faults.append(Fault(code="layers-out-of-range", message=message, where="layers"))
        try:
            shape.count_lora(self.rank, self.target_modules)
        except ConfigInvalid as error:
            faults.append(Fault(code=error.code, message=error.message, where="target_modules"))
        if faults:
            raise _invalid(faults)


def _invalid(faults: list[Fault]) -> ConfigInvalid:
    places = ", ".join(dict.fromkeys(fault.where for fault in faults))
    return ConfigInvalid("memory-request-invalid", f"Nothing can be told with this: {places}.", faults=faults)


_SECTION: Final = "request"
_CARDS: Final = "cards"
_RULES: Final[Mapping[str, Rule]] = {
    "method": choice(ALL_METHODS, *METHODS),
    "tokens": count(1, MAX_TOKENS),
    "batch_size": count(1, MAX_BATCH_SIZE),
    "rank": count(1, MAX_RANK),
    "target_modules": NAMES,
    "layers": optional(count(1)),
    "checkpointing": FLAG,
    "short_moments": FLAG,
}


def _read_values(raw: Mapping[str, Any]) -> tuple[dict[str, Any], list[Fault]]:
    faults: list[Fault] = []
    known = {name: value for name, value in raw.items() if name != _CARDS}
    values = read_section(_SECTION, known, _RULES, faults)
    faults = [replace(fault, where=fault.where.removeprefix(f"{_SECTION}.")) for fault in faults]
    if _CARDS in raw:
        cards = raw[_CARDS]
        if isinstance(cards, list | tuple):
            values[_CARDS] = read_cards(cards, faults)
        else:
            faults.append(Fault(code="wrong-type", message="must be a list of texts", where=_CARDS))
    return values, faults
