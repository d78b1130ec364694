"""Healthy runs on different small configurations raise nothing at all."""

from pathlib import Path
from typing import Any

import pytest

from tests.training.engine.planted.watched import train_watched

HEALTHY: dict[str, dict[str, Any]] = {
    "defaults": {},
    "rank-2": {"lora": {"r": 2}},
    "rank-32-rslora": {"lora": {"r": 32, "use_rslora": True}, "learning_rate": 1e-3},
    "dora": {"lora": {"use_dora": True}},
    "batch-1-accumulation-8": {"per_device_batch_size": 1, "gradient_accumulation_steps": 8},
    "batch-16-20-steps": {
        "per_device_batch_size": 16, "gradient_accumulation_steps": 1, "max_steps": 20, "eval_every_steps": 5,
        "learning_rate": 5e-3,
    },
    "bfloat16-checkpointing": {"dtype": "bfloat16", "gradient_checkpointing": True},
    "last-two-thirds-no-dropout": {"lora": {"layers": "last_two_thirds", "lora_dropout": 0.0}},
    "long-warmup-linear": {"warmup_fraction": 0.5, "lr_scheduler": "linear", "max_steps": 120},
    "query-and-value-constant": {
        "lora": {"target_modules": ["q_proj", "v_proj"], "r": 16}, "lr_scheduler": "constant",
        "learning_rate": 5e-3, "max_steps": 160,
    },
    "packing": {"packing": True, "max_length_tokens": 256},
    "full": {"method": "full", "learning_rate": 2e-4},
    "no-held-out": {"held_out": None, "seed": 3},
}  # fmt: skip


@pytest.mark.parametrize("name", HEALTHY)
def test_nothing_is_raised(name: str, tmp_path: Path) -> None:
    monitor = train_watched(tmp_path, **HEALTHY[name])
    assert [finding.message for finding in monitor.findings] == []
    assert monitor.held_back == []
    assert (
        monitor.history.losses[-1] < 0.8 * monitor.history.losses[0]
    )  # It did learn, so that it is healthy.


def test_there_are_ten() -> None:
    assert len(HEALTHY) >= 10
