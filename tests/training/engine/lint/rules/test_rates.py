"""The guide: 1e-4 to 3e-4 for a LoRA, 1e-5 to 2e-5 for full fine-tuning."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.artifacts.findings import Severity
from tests.training.engine.lint.plans import find, make_plan, severity_of

WARNING, ERROR, INFO = Severity.WARNING, Severity.ERROR, Severity.INFO


@pytest.mark.parametrize(
    ("rate", "code", "severity"),
    [
        (1e-6, "learning-rate-of-full-fine-tuning", WARNING),
        (1e-5, "learning-rate-of-full-fine-tuning", WARNING),
        (2e-5, "learning-rate-of-full-fine-tuning", WARNING),
        (5e-5, "learning-rate-below-usual", INFO),
        (4e-4, "learning-rate-above-usual", WARNING),
        (3e-3, "learning-rate-above-usual", WARNING),
        (4e-3, "learning-rate-far-too-high", ERROR),
    ],
)
@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_rates_of_a_lora(rate: float, code: str, severity: Severity, method: str) -> None:
    assert severity_of(make_plan(learning_rate=rate, method=method), code) is severity


@pytest.mark.parametrize("rate", [1e-4, 2e-4, 3e-4])
def test_usual_rates(rate: float) -> None:
    for code in ("full-fine-tuning", "a-lora"):
        assert find(make_plan(learning_rate=rate), f"learning-rate-of-{code}") is None
    for code in ("above-usual", "below-usual", "far-too-high"):
        assert find(make_plan(learning_rate=rate), f"learning-rate-{code}") is None


def test_rates_of_full_fine_tuning() -> None:
    # The default, 2e-4, is one of a LoRA.
    finding = find(make_plan(method="full"), "learning-rate-of-a-lora")
    assert finding is not None and "0.0002" in finding.message
    for rate in (1e-5, 2e-5):
        plan = make_plan(method="full", learning_rate=rate)
        assert find(plan, "learning-rate-of-a-lora") is None
        assert find(plan, "learning-rate-of-full-fine-tuning") is None


@pytest.mark.parametrize(
    ("lora", "severity", "said"),
    [
        # The guide: alpha fixed at 16 while r goes from 8 to 16 takes the scale from 2 to 1.
        ({"r": 16, "lora_alpha": 16}, WARNING, "alpha / r = 1 (alpha 16, r 16)"),
        ({"r": 16, "lora_alpha": 24}, INFO, "alpha / r = 1.5"),
        ({"r": 8, "lora_alpha": 64}, WARNING, "learning rate of 0.0008 instead of 0.0002"),
        # 32 / sqrt(16) = 8, four times the usual.
        ({"r": 16, "use_rslora": True}, WARNING, "alpha / sqrt(r) = 8"),
    ],
)
def test_a_changed_scale_is_a_changed_rate(lora: dict[str, Any], severity: Severity, said: str) -> None:
    finding = find(make_plan(lora=lora), "scale-changed")
    assert finding is not None
    assert finding.severity is severity
    assert said in finding.message


@given(st.integers(1, 512))
def test_a_coupled_alpha_keeps_the_scale(rank: int) -> None:
    assert find(make_plan(lora={"r": rank}), "scale-changed") is None
    assert find(make_plan(lora={"lora_alpha": 2 * rank}), "scale-changed") is None


def test_rank_stabilised_scaling_with_the_alpha_that_is_advised() -> None:
    finding = find(make_plan(lora={"r": 16, "use_rslora": True}), "scale-changed")
    assert finding is not None and "lora_alpha to 8," in finding.remedy  # 2 x sqrt(16)
    assert find(make_plan(lora={"r": 16, "lora_alpha": 8, "use_rslora": True}), "scale-changed") is None


def test_the_scale_means_nothing_to_full_fine_tuning() -> None:
    assert find(make_plan(method="full", lora={"r": 16, "lora_alpha": 16}), "scale-changed") is None


@pytest.mark.parametrize(
    ("fraction", "code", "severity"), [(0, "no-warmup", WARNING), (0.11, "long-warmup", INFO)]
)
def test_warm_up(fraction: float, code: str, severity: Severity) -> None:
    assert severity_of(make_plan(warmup_fraction=fraction), code) is severity
    for healthy in (0.03, 0.1):
        assert find(make_plan(warmup_fraction=healthy), code) is None


def test_clipping() -> None:
    assert severity_of(make_plan(max_grad_norm=0), "no-gradient-clipping") is WARNING
    assert find(make_plan(max_grad_norm=1.0), "no-gradient-clipping") is None
