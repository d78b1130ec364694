"""When to stop because the held-out loss rises (MISSION D3: overfitting)."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

MIN_IMPROVEMENT: Final = 1e-4
"""In nats per token: what float32 sums over a few thousand tokens can tell apart safely."""


@dataclass(slots=True, kw_only=True)
class EarlyStopping:
    """Follows the held-out loss and says when it has not fallen for a while.

    Attributes:
        patience: Measurements without an improvement after which training stops; None never stops it.
        best_loss: Lowest loss so far, in nats per token; None before the first.
        best_step: Its step; 0 before the first.
        num_without_improvement: Measurements since the best.
    """

    patience: int | None
    best_loss: float | None = None
    best_step: int = 0
    num_without_improvement: int = 0

    def observe(self, step: int, loss: float) -> bool:
        """Take a measurement; return whether it is the best so far. One that is not finite never is."""
        is_better = self.best_loss is None or loss < self.best_loss - MIN_IMPROVEMENT
        if is_better and math.isfinite(loss):
            self.best_loss, self.best_step, self.num_without_improvement = loss, step, 0
            return True
        self.num_without_improvement += 1
        return False

    @property
    def should_stop(self) -> bool:
        """Whether patience is over."""
        return self.patience is not None and self.num_without_improvement >= self.patience

    def to_json(self) -> dict[str, Any]:
        """Return the state, for a checkpoint."""
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> "EarlyStopping":
        """Read what `to_json` gave."""
        return cls(**raw)
