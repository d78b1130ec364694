from typing import Any

import pytest
import torch

from training.engine.device_memory import MemoryMeter


def test_the_process_counts_without_an_accelerator() -> None:
    meter = MemoryMeter(torch.device("cpu"))
    # An interpreter with torch loaded holds more than 50 MB.
    assert meter.read_highest_bytes() == meter.read_peak_bytes() > 5e7
    assert meter.read_in_use_bytes() > 5e7
    assert not meter.restart_peak()


def test_the_highest_use_survives_a_restart_of_the_peak(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = {"now": 900}

    def reset(device: Any) -> None:
        peaks["now"] = 100

    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: peaks["now"])
    monkeypatch.setattr(torch.cuda, "reset_peak_memory_stats", reset)
    meter = MemoryMeter(torch.device("cuda"))
    assert meter.restart_peak()
    assert meter.read_peak_bytes() == 100
    assert meter.read_highest_bytes() == 900
