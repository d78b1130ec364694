"""The numbers of a run that rules look at: plain arrays, a few bytes for each step."""

from array import array
from dataclasses import dataclass
from typing import Final

from training.engine.step_record import HeldOutRecord, StepRecord

RATE_RISES_BY: Final = 1e-9
"""Relative; a rate that rises less than that does not rise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What is known of a run before its first step.

    Attributes:
        is_adapter: Whether an adapter is trained; full fine-tuning takes a tenth of its learning rate.
        lora_scaling: alpha / r (with rsLoRA alpha / sqrt(r)), which works like a factor on the rate; None
            stands for the usual 2 (MISSION B3).
        has_held_out: Whether the held-out loss will be measured; None when that is not known.
        expected_tokens_per_second: Of an earlier run of the same kind on the same machine, such as the small
            experiment's; None when there was none.
    """

    is_adapter: bool = True
    lora_scaling: float | None = None
    has_held_out: bool | None = None
    expected_tokens_per_second: float | None = None


class RunHistory:
    """All steps that were seen, in order.

    Attributes:
        facts: What was known before.
        first_step: Number of the first step seen; 0 before it. Above 1 after a resumption whose earlier steps
            are not known.
        num_steps: Steps that are planned.
        losses: Mean loss per trained token of each step, in nats.
        num_trained_tokens: Of each step.
        norms: Gradient norm before clipping; NaN for a step that float16 left out.
        max_norms: What it is clipped to; infinite without clipping.
        rates: Learning rate.
        num_tokens: Tokens read.
        num_padded_tokens: Padding computed.
        seconds: Time of the step.
        memory_bytes: Memory in use after the step.
        held_out: Measurements of the held-out loss.
    """

    def __init__(self, facts: RunFacts) -> None:
        self.facts = facts
        self.first_step = self.num_steps = 0
        self.losses = array("d")
        self.num_trained_tokens = array("d")
        self.norms = array("d")
        self.max_norms = array("d")
        self.rates = array("d")
        self.num_tokens = array("d")
        self.num_padded_tokens = array("d")
        self.seconds = array("d")
        self.memory_bytes = array("d")
        self.held_out: list[HeldOutRecord] = []
        self._num_warmup_steps: int | None = None

    def add_step(self, record: StepRecord) -> None:
        """Take a step."""
        if not self.losses:
            self.first_step = record.step
        self.num_steps = record.num_steps
        has_risen = not self.rates or record.learning_rate > self.rates[-1] * (1 + RATE_RISES_BY)
        if self._num_warmup_steps is None and not has_risen:
            self._num_warmup_steps = len(self.rates)
        self.losses.append(record.loss)
        self.num_trained_tokens.append(record.num_trained_tokens)
        self.norms.append(float("nan") if record.gradient_norm is None else record.gradient_norm)
        self.max_norms.append(float("inf") if record.max_grad_norm is None else record.max_grad_norm)
        self.rates.append(record.learning_rate)
        self.num_tokens.append(record.num_tokens)
        self.num_padded_tokens.append(record.num_padded_tokens)
        self.seconds.append(record.seconds)
        self.memory_bytes.append(record.memory_bytes)

    def __len__(self) -> int:
        """Number of steps seen."""
        return len(self.losses)

    @property
    def begins_at_start(self) -> bool:
        """Whether the first step of the run was seen; rules about the start need it."""
        return self.first_step == 1

    @property
    def last_step(self) -> int:
        """Number of the last step seen."""
        return self.first_step + len(self) - 1

    @property
    def is_over(self) -> bool:
        """Whether the last planned step was seen."""
        return len(self) > 0 and self.last_step >= self.num_steps

    @property
    def num_warmup_steps(self) -> int:
        """Steps seen until the learning rate no longer rose; all of them while it still rises."""
        return len(self) if self._num_warmup_steps is None else self._num_warmup_steps

    @property
    def full_rate(self) -> float:
        """Highest learning rate so far, as if the scale alpha / r were the usual 2."""
        return max(self.rates) * (self.facts.lora_scaling or 2.0) / 2.0

    def step_at(self, index: int) -> int:
        """Return the number of the step at an index, which may be negative."""
        return self.first_step + (index if index >= 0 else len(self) + index)

    def mean_loss(self, start: int, stop: int) -> float:
        """Mean loss per trained token of the steps at ``start`` to before ``stop``.

        Without trained tokens it is the plain mean.
        """
        losses, weights = self.losses[start:stop], self.num_trained_tokens[start:stop]
        total = sum(weights)
        if total <= 0:
            return sum(losses) / len(losses)
        return sum(loss * weight for loss, weight in zip(losses, weights, strict=True)) / total
