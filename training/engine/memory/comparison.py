"""Full fine-tuning, LoRA and QLoRA beside each other for one model: what each needs, which cards it fits, and
what to change first where none does (MISSION B1, D5).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Final

from training.engine.memory.cards import Card
from training.engine.memory.doubts import Doubt, find_doubts
from training.engine.memory.estimate import (
    Change,
    MemoryEstimate,
    MemoryLine,
    MemoryRequest,
    estimate_memory,
    suggest_changes,
)
from training.engine.memory.model_shape import ModelShape, model_type_of, read_model_shape
from training.engine.memory.request import EstimateRequest

PREFERRED_METHOD: Final = "lora"
"""Changes start from it where no method fits: quantisation is the last change, not the first."""


class Fit(StrEnum):
    """Whether a training fits a card."""

    FITS = "fits"
    """Even its most does."""
    TIGHT = "tight"
    """Its least does, its most does not."""
    TOO_LARGE = "too-large"


@dataclass(frozen=True, slots=True, kw_only=True)
class CardFit:
    """One method on one kind of card.

    Attributes:
        card: The card.
        fit: Whether it fits.
        estimate: The ledger of one of the cards.
    """

    card: Card
    fit: Fit
    estimate: MemoryEstimate

    @property
    def is_sharded(self) -> bool:
        """Whether weights, gradients and optimiser state are spread over the cards; where one card can hold
        all of it, nothing is spread.
        """
        return self.estimate.request.is_sharded

    def to_json(self) -> dict[str, Any]:
        """Return the fit as JSON values."""
        return {
            **_card_to_json(self.card),
            "fit": self.fit.value,
            "is_sharded": self.is_sharded,
            **_bytes_to_json(self.estimate),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MethodEstimate:
    """One method: its ledger on a single card, and how it fits the cards."""

    estimate: MemoryEstimate
    fits: tuple[CardFit, ...]

    @property
    def method(self) -> str:
        """full, lora or qlora."""
        return self.estimate.request.method

    def to_json(self) -> dict[str, Any]:
        """Return the ledger and the fits as JSON values."""
        return {
            "method": self.method,
            "num_trained": self.estimate.num_trained,
            "lines": [
                {"name": line.name, **_bytes_to_json(line), "how": line.how} for line in self.estimate.lines
            ],
            **_bytes_to_json(self.estimate),
            "cards": [fit.to_json() for fit in self.fits],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CardAnswer:
    """What one kind of card is good for.

    Attributes:
        card: The card.
        fitting: Methods that fit even with their most.
        tight: Methods of which only the least fits.
        changes: Where none fits: what to change, in this order, each on top of those before it. When the last
            one does not fit either, nothing helps on this card.
    """

    card: Card
    fitting: tuple[str, ...]
    tight: tuple[str, ...]
    changes: tuple[Change, ...]

    @property
    def is_hopeless(self) -> bool:
        """Whether neither a method nor any change fits."""
        return not self.fitting and not (self.changes and self.changes[-1].fits)

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values."""
        return {
            **_card_to_json(self.card),
            "fitting": list(self.fitting),
            "tight": list(self.tight),
            "changes": [_change_to_json(change) for change in self.changes],
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryComparison:
    """The whole answer.

    Attributes:
        request: What was asked for.
        model_type: transformers' name of the architecture; "" when config.json states none.
        shape: Of the model.
        methods: Each with its ledger, in the order full, lora, qlora.
        cards: What each kind of card is good for, in the order of the request.
        doubts: Reasons to take the figures with care.
    """

    request: EstimateRequest
    model_type: str
    shape: ModelShape
    methods: tuple[MethodEstimate, ...]
    cards: tuple[CardAnswer, ...]
    doubts: tuple[Doubt, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the answer as JSON values; all sizes are in bytes and for one card."""
        return {
            "request": self.request.to_json(),
            "model": {
                "model_type": self.model_type,
                "num_parameters": self.shape.num_parameters,
                "num_layers": self.shape.num_layers,
                "hidden_size": self.shape.hidden_size,
                "vocab_size": self.shape.vocab_size,
            },
            "methods": [method.to_json() for method in self.methods],
            "cards": [answer.to_json() for answer in self.cards],
            "doubts": [{"code": doubt.code, "message": doubt.message} for doubt in self.doubts],
        }


def compare_methods(
    config: Mapping[str, Any], request: EstimateRequest, *, num_stored_parameters: int | None = None
) -> MemoryComparison:
    """Weigh a training with each of the methods.

    Args:
        config: Content of the base model's config.json.
        request: The training and the cards.
        num_stored_parameters: What the weight files hold, to check the count against; None where there are
            none.

    Raises:
        ConfigInvalid: ``model-shape-unknown`` or ``memory-request-invalid``, with every fault.
    """
    shape = read_model_shape(config)
    request.check_against(shape)
    methods = tuple(_weigh(shape, request.for_method(method), request.cards) for method in request.methods)
    return MemoryComparison(
        request=request,
        model_type=model_type_of(config),
        shape=shape,
        methods=methods,
        cards=tuple(_answer(shape, card, methods) for card in request.cards),
        doubts=find_doubts(config, shape, num_stored_parameters=num_stored_parameters),
    )


def _weigh(shape: ModelShape, request: MemoryRequest, cards: tuple[Card, ...]) -> MethodEstimate:
    alone = estimate_memory(shape, request)
    return MethodEstimate(estimate=alone, fits=tuple(_fit(shape, alone, card) for card in cards))


def _fit(shape: ModelShape, alone: MemoryEstimate, card: Card) -> CardFit:
    is_sharded = card.num_cards > 1 and alone.high_bytes > card.memory_bytes
    estimate = estimate_memory(shape, _on_cards(alone.request, card, is_sharded)) if is_sharded else alone
    if estimate.high_bytes <= card.memory_bytes:
        fit = Fit.FITS
    else:
        fit = Fit.TIGHT if estimate.low_bytes <= card.memory_bytes else Fit.TOO_LARGE
    return CardFit(card=card, fit=fit, estimate=estimate)


def _answer(shape: ModelShape, card: Card, methods: tuple[MethodEstimate, ...]) -> CardAnswer:
    fits = {method.method: next(fit.fit for fit in method.fits if fit.card == card) for method in methods}
    fitting = tuple(name for name, fit in fits.items() if fit is Fit.FITS)
    changes: tuple[Change, ...] = ()
    if not fitting:
        requests = {method.method: method.estimate.request for method in methods}
        start = requests.get(PREFERRED_METHOD) or next(iter(requests.values()))
        changes = suggest_changes(
            shape, _on_cards(start, card, card.num_cards > 1), card_bytes=card.memory_bytes
        )
    return CardAnswer(
        card=card,
        fitting=fitting,
        tight=tuple(name for name, fit in fits.items() if fit is Fit.TIGHT),
        changes=changes,
    )


def _on_cards(request: MemoryRequest, card: Card, is_sharded: bool) -> MemoryRequest:
    return replace(request, num_cards=card.num_cards, is_sharded=is_sharded)


def _card_to_json(card: Card) -> dict[str, Any]:
    return {"card": card.label, "memory_bytes": card.memory_bytes, "num_cards": card.num_cards}


def _bytes_to_json(sized: MemoryLine | MemoryEstimate) -> dict[str, int]:
    # A byte more or less is nothing, and fractions of one would only puzzle readers.
    return {"low_bytes": round(sized.low_bytes), "high_bytes": round(sized.high_bytes)}


def _change_to_json(change: Change) -> dict[str, Any]:
    return {
        "what": change.what,
        "method": change.request.method,
        "batch_size": change.request.batch_size,
        "tokens": change.request.length_tokens,
        "checkpointing": change.request.has_checkpointing,
        "high_bytes": round(change.high_bytes),
        "fits": change.fits,
    }
