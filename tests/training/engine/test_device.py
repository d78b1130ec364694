import pytest
import torch

from training.engine import device
from training.engine.device import Precision, choose_attention, choose_precision, weights_dtype


@pytest.mark.skipif(torch.cuda.is_available(), reason="the choice on a CPU")
@pytest.mark.parametrize(("has_bf16", "expected"), [(True, torch.bfloat16), (False, torch.float32)])
def test_auto_follows_the_cpu(has_bf16: bool, expected: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "_cpu_has_bf16", lambda: has_bf16)
    assert choose_precision("auto") == Precision(torch.device("cpu"), expected)
    assert choose_precision("float32").dtype == torch.float32


def test_attention_by_length_and_device() -> None:
    cpu = Precision(torch.device("cpu"), torch.float32)
    cuda = Precision(torch.device("cuda"), torch.bfloat16)
    assert choose_attention(cpu, 100) == "eager"
    assert choose_attention(cpu, 1000) == "sdpa"
    assert choose_attention(cuda, 100) == "sdpa"
    assert cuda.dtype_name == "bfloat16"


def test_full_training_keeps_its_weights_in_float32() -> None:
    half = Precision(torch.device("cpu"), torch.bfloat16)
    assert weights_dtype("full", half) == torch.float32
    assert weights_dtype("lora", half) == weights_dtype("qlora", half) == torch.bfloat16
