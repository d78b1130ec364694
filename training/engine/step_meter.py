"""What is measured while training: sums over the whole run, and means since the last report."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from training.engine.batches import Batch


@dataclass(slots=True)
class _Interval:
    """Sums since the last report."""

    seconds: float = 0.0
    num_tokens: int = 0
    num_padded_tokens: int = 0
    num_trained_tokens: int = 0
    loss_sum: float = 0.0
    gradient_norm_sum: float = 0.0
    num_norms: int = 0


class StepMeter:
    """Adds up tokens, time and losses.

    Attributes:
        num_tokens: Tokens read so far, padding not counted.
        num_padded_tokens: Padding computed so far.
        num_trained_tokens: Tokens in the loss so far.
        seconds: Time inside `measure`.
    """

    def __init__(self) -> None:
        self.num_tokens = 0
        self.num_padded_tokens = 0
        self.num_trained_tokens = 0
        self.seconds = 0.0
        self._interval = _Interval()

    @contextmanager
    def measure(self) -> Iterator[None]:
        """Count the time of the block as training time."""
        begun = time.monotonic()
        yield
        elapsed = time.monotonic() - begun
        self.seconds += elapsed
        self._interval.seconds += elapsed

    def add_batch(self, batch: Batch) -> None:
        """Count a batch's tokens."""
        for sums in (self, self._interval):
            sums.num_tokens += batch.num_tokens
            sums.num_padded_tokens += batch.num_padded_tokens

    def add_step(self, *, loss_sum: float, num_trained_tokens: int, gradient_norm: float | None) -> None:
        """Count an optimiser step; it has no norm when it was left out."""
        self.num_trained_tokens += num_trained_tokens
        self._interval.num_trained_tokens += num_trained_tokens
        self._interval.loss_sum += loss_sum
        if gradient_norm is not None:
            self._interval.gradient_norm_sum += gradient_norm
            self._interval.num_norms += 1

    @property
    def padding_fraction(self) -> float:
        """Padding among all computed tokens so far, 0-1."""
        return self.num_padded_tokens / max(1, self.num_tokens + self.num_padded_tokens)

    @property
    def tokens_per_second(self) -> float:
        """Tokens read per second so far."""
        return self.num_tokens / max(self.seconds, 1e-9)

    def to_json(self) -> dict[str, float]:
        """Return the sums over the whole run, for a checkpoint."""
        return {
            "num_tokens": self.num_tokens,
            "num_padded_tokens": self.num_padded_tokens,
            "num_trained_tokens": self.num_trained_tokens,
            "seconds": self.seconds,
        }

    def load_json(self, raw: Mapping[str, Any]) -> None:
        """Take over what `to_json` gave; the interval begins anew."""
        self.num_tokens = int(raw["num_tokens"])
        self.num_padded_tokens = int(raw["num_padded_tokens"])
        self.num_trained_tokens = int(raw["num_trained_tokens"])
        self.seconds = float(raw["seconds"])

    def take_interval(self) -> dict[str, float]:
        """Return the means since the last call and start a new interval; there must have been a step."""
        interval, self._interval = self._interval, _Interval()
        return {
            "loss": interval.loss_sum / interval.num_trained_tokens,
            "gradient_norm": interval.gradient_norm_sum / max(1, interval.num_norms),
            "tokens_per_second": interval.num_tokens / max(interval.seconds, 1e-9),
            "padding_fraction": interval.num_padded_tokens
            / max(1, interval.num_tokens + interval.num_padded_tokens),
        }
