"""The loss scale of float16: small gradients are kept from vanishing, and steps that overflow are left out.

torch's own scaler looks at the shards of each process apart; here the norm over all of them decides, so that
all processes leave out the same steps.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import torch

from training.engine.device import Precision
from training.engine.sharded_tensors import gather_whole

INITIAL_SCALE: Final = 65536.0
MIN_SCALE: Final = 1.0
"""Below it the loss itself overflows, which no scale can mend."""
GROWTH_STEPS: Final = 2000


class LossScale:
    """Scales losses and unscales gradients where the number format needs it; does nothing elsewhere.

    The scale begins at 65536, is halved at each overflow and doubled after 2000 steps without one (Mixed
    Precision Training, https://arxiv.org/abs/1710.03740, section 3.2).

    Args:
        precision: Of the training.
        optimiser: Whose steps are taken.
        parameters: All that it changes.

    Attributes:
        scale: Factor on the loss, a power of two; 1 where the number format needs none.
    """

    def __init__(
        self,
        precision: Precision,
        optimiser: torch.optim.Optimizer,
        parameters: Sequence[torch.nn.Parameter],
    ) -> None:
        self._optimiser = optimiser
        self._parameters = parameters
        self._is_enabled = precision.dtype == torch.float16
        self._num_good_steps = 0
        self._is_finite = True
        self.scale = INITIAL_SCALE if self._is_enabled else 1.0

    @property
    def may_overflow(self) -> bool:
        """Whether a gradient that is not finite may come from the scale alone."""
        return self.scale > MIN_SCALE

    def backward(self, loss: torch.Tensor) -> None:
        """Add the gradients of a loss."""
        torch.autograd.backward(loss * self.scale)

    def clip(self, max_norm: float) -> float:
        """Unscale and clip the gradients; return their norm before clipping, which may be infinite or NaN.

        Args:
            max_norm: 0 does not clip.
        """
        if self._is_enabled:
            for parameter in self._parameters:
                if parameter.grad is not None:
                    parameter.grad.mul_(1.0 / self.scale)
        norm = torch.nn.utils.clip_grad_norm_(self._parameters, max_norm or math.inf)
        value = float(gather_whole(norm))
        self._is_finite = math.isfinite(value)
        return value

    def step(self) -> None:
        """Take the optimiser's step, or leave it out after an overflow."""
        if self._is_finite:
            self._optimiser.step()
        if not self._is_enabled:
            return
        if not self._is_finite:
            self.scale, self._num_good_steps = max(MIN_SCALE, self.scale / 2), 0
            return
        self._num_good_steps += 1
        if self._num_good_steps == GROWTH_STEPS:
            self.scale, self._num_good_steps = 2 * self.scale, 0

    def to_json(self) -> dict[str, Any]:
        """Return the state, for a checkpoint."""
        return {"scale": self.scale, "num_good_steps": self._num_good_steps}

    def load_json(self, raw: Mapping[str, Any]) -> None:
        """Take over what `to_json` gave."""
        self.scale, self._num_good_steps = float(raw["scale"]), int(raw["num_good_steps"])
