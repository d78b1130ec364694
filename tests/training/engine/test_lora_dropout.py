import pytest
import torch

from training.engine.lora_dropout import BlockDropout


@pytest.mark.parametrize("p", [0.05, 0.5])
def test_rate_and_scale(p: float) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        out = BlockDropout(p)(torch.ones(1000, 401))
    zero_fraction = float((out == 0).float().mean())
    # Binomial with n = 401,000: four standard deviations are below 0.0032.
    assert zero_fraction == pytest.approx(p, abs=0.0032)
    assert float(out.max()) == pytest.approx(1 / (1 - p), rel=1e-4)
    assert float(out.mean()) == pytest.approx(1.0, abs=0.01)


def test_identity_when_off() -> None:
    x = torch.randn(3, 5)
    assert BlockDropout(0.0)(x) is x
    assert BlockDropout(0.5).eval()(x) is x


def test_checkpointing_repeats_the_mask() -> None:
    dropout = BlockDropout(0.5)
    x = torch.ones(64, requires_grad=True)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        out = torch.utils.checkpoint.checkpoint(dropout, x, use_reentrant=False)
        out.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad != 0, out != 0)
