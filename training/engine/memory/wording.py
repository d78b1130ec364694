"""An estimate in words, the same on the command line and on the page."""

from collections.abc import Sequence
from typing import Final

from training.engine.memory.cards import BYTES_PER_GB
from training.engine.memory.comparison import CardAnswer, CardFit, Fit

METHOD_NAMES: Final = {"full": "full fine-tuning", "lora": "LoRA", "qlora": "QLoRA"}


def name_item(line_name: str) -> str:
    """Return the name of a line of the ledger for people: "frozen weights"."""
    return line_name.replace("_", " ")


def list_methods(methods: Sequence[str]) -> str:
    """Return one or more methods in words: "LoRA and QLoRA"."""
    names = [METHOD_NAMES[method] for method in methods]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def gigabytes(low_bytes: float, high_bytes: float) -> str:
    """Return a range in GB: "2.0-3.0", or one figure where both ends are the same to a decimal."""
    low, high = f"{low_bytes / BYTES_PER_GB:.1f}", f"{high_bytes / BYTES_PER_GB:.1f}"
    return low if low == high else f"{low}-{high}"


def describe_fit(fit: CardFit) -> str:
    """Return the fit in words: what is left or missing on one card when the most is needed."""
    free = (fit.card.memory_bytes - fit.estimate.high_bytes) / BYTES_PER_GB
    words = {
        Fit.FITS: f"fits, {free:.1f} GB left",
        Fit.TIGHT: f"tight, up to {-free:.1f} GB over",
        Fit.TOO_LARGE: f"too large by {-free:.1f} GB",
    }[fit.fit]
    return f"sharded: {words}" if fit.is_sharded else words


def describe_answer(answer: CardAnswer) -> str:
    """Return what a card is good for, in one sentence; the changes, where there are any, follow it."""
    if answer.fitting:
        verb = "fits" if len(answer.fitting) == 1 else "fit"
        return f"{list_methods(answer.fitting)} {verb}."
    if not answer.changes:
        return "Nothing fits, and no change is left that would save anything."
    if answer.is_hopeless:
        return "Nothing fits, whatever is changed. It would come down to:"
    return "Nothing fits as it is. What to change first, in this order:"
