"""Which module's output is the first that is not finite."""

from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any

import torch
from torch import nn

from training.engine.forensics.state_check import strip_adapter


class ActivationWatch:
    """Looks at the outputs of all modules inside its block, in forward order.

    The verdicts stay on the device until they are asked for, so that watching does not make it wait.

    Args:
        model: Any module.
        only_leaves: Leave out modules that have others inside; what they compute between those is then not
            looked at.
    """

    def __init__(self, model: nn.Module, *, only_leaves: bool) -> None:
        self._modules = {
            name: module
            for name, module in model.named_modules()
            if name and not (only_leaves and next(module.children(), None) is not None)
        }
        self._hooks: list[torch.utils.hooks.RemovableHandle] = []
        self._verdicts: list[tuple[str, torch.Tensor]] = []

    def __enter__(self) -> "ActivationWatch":
        for name, module in self._modules.items():
            self._hooks.append(module.register_forward_hook(self._make_hook(name)))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def take_first_bad(self) -> str | None:
        """Return the first module whose output was not finite since the last call; None when all were."""
        verdicts, self._verdicts = self._verdicts, []
        if not verdicts or bool(torch.stack([verdict for _, verdict in verdicts]).all()):
            return None
        return next(strip_adapter(name) for name, verdict in verdicts if not bool(verdict))

    def _make_hook(self, name: str) -> Any:
        def look(module: nn.Module, inputs: Any, output: Any) -> None:
            for tensor in _iterate_tensors(output):
                self._verdicts.append((name, torch.isfinite(tensor.detach()).all()))

        return look


def _iterate_tensors(output: Any) -> Iterator[torch.Tensor]:
    if isinstance(output, torch.Tensor):
        if output.is_floating_point():
            yield output
    elif isinstance(output, Mapping):
        for value in output.values():
            yield from _iterate_tensors(value)
    elif isinstance(output, tuple | list):
        for value in output:
            yield from _iterate_tensors(value)
