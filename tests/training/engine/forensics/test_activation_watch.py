"""The first bad output in forward order."""

import torch
from torch import nn

from training.engine.forensics.activation_watch import ActivationWatch


class Divide(nn.Module):
    def forward(self, values: torch.Tensor) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
        return values, {"quotient": 1.0 / values}


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Identity()
        self.divide = Divide()
        self.last = nn.Identity()

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        _, found = self.divide(self.first(values))
        result: torch.Tensor = self.last(found["quotient"])
        return result


def test_names_the_first_and_begins_anew() -> None:
    model = nn.Sequential(Block())
    with ActivationWatch(model, only_leaves=True) as watch:
        model(torch.tensor([1.0]))
        assert watch.take_first_bad() is None
        model(torch.tensor([0.0]))
        assert watch.take_first_bad() == "0.divide"
        assert watch.take_first_bad() is None
    model(torch.tensor([0.0]))
    assert watch.take_first_bad() is None


def test_what_happens_between_modules_shows_on_the_outer_one() -> None:
    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Identity()

        def forward(self, values: torch.Tensor) -> torch.Tensor:
            return torch.log(self.inner(values) - 1.0)

    model = nn.Sequential(Outer())
    for only_leaves, expected in ((True, None), (False, "0")):
        with ActivationWatch(model, only_leaves=only_leaves) as watch:
            model(torch.tensor([0.5]))
            assert watch.take_first_bad() == expected
