"""What a training tells those who watch it, step by step. No torch here."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """One optimiser step, over all processes.

    Attributes:
        step: Counted from 1.
        num_steps: All steps that are planned.
        loss: Mean loss per trained token of this step, in nats.
        gradient_norm: Euclidean norm over all trainable parameters, before clipping; None when the step was
            left out because the gradients overflowed under float16's loss scale.
        max_grad_norm: The norm that gradients are clipped to; None without clipping.
        learning_rate: Of this step.
        num_tokens: Tokens read, padding not counted.
        num_trained_tokens: Tokens in the loss.
        num_padded_tokens: Padding computed.
        seconds: Wall time of the step.
        memory_bytes: Memory in use after the step: allocated on the device, or the process's resident set
            without one.
    """

    step: int
    num_steps: int
    loss: float
    gradient_norm: float | None
    max_grad_norm: float | None
    learning_rate: float
    num_tokens: int
    num_trained_tokens: int
    num_padded_tokens: int
    seconds: float
    memory_bytes: int

    @property
    def is_clipped(self) -> bool:
        """Whether the gradients were made shorter."""
        if self.max_grad_norm is None or self.gradient_norm is None:
            return False
        return self.gradient_norm > self.max_grad_norm

    @property
    def padding_fraction(self) -> float:
        """Padding among the computed tokens, 0-1."""
        return self.num_padded_tokens / max(1, self.num_tokens + self.num_padded_tokens)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldOutRecord:
    """One measurement of the held-out loss.

    Attributes:
        step: The step after which it was measured.
        loss: Mean loss per trained token of the held-out rows, in nats.
        memory_before_bytes: Memory in use before it, as in `StepRecord`.
        memory_after_bytes: Memory in use after it.
        memory_peak_bytes: Highest use within it; None where only the momentary use can be asked.
    """

    step: int
    loss: float
    memory_before_bytes: int
    memory_after_bytes: int
    memory_peak_bytes: int | None


class StepObserver(Protocol):
    """Somebody who watches a training."""

    def on_step(self, record: StepRecord) -> None:
        """Take one optimiser step; called for every one, in order, after a resumption from there on."""

    def on_held_out(self, record: HeldOutRecord) -> None:
        """Take one measurement of the held-out loss, after the step's `on_step`."""


class Observers:
    """Several observers as one."""

    def __init__(self, observers: Sequence[StepObserver]) -> None:
        self._observers = tuple(observers)

    def on_step(self, record: StepRecord) -> None:
        """Tell all of them."""
        for observer in self._observers:
            observer.on_step(record)

    def on_held_out(self, record: HeldOutRecord) -> None:
        """Tell all of them."""
        for observer in self._observers:
            observer.on_held_out(record)
