"""Which device and number format a training run uses."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import torch

SHORT_ROW_TOKENS = 384
"""Up to this length plain attention beats torch's blocked CPU kernel in the backward pass (measured, SmolLM2,
2 cores)."""


@dataclass(frozen=True, slots=True)
class Precision:
    """Where and in which format the forward and backward passes run; the adapter's weights are float32
    always.

    Attributes:
        device: The device.
        dtype: Of the frozen base and of matrix products.
    """

    device: torch.device
    dtype: torch.dtype

    @property
    def dtype_name(self) -> str:
        """For example "bfloat16"."""
        return str(self.dtype).removeprefix("torch.")

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context for forward passes: products in ``dtype`` from float32 adapter weights."""
        if self.dtype == torch.float32:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.dtype)


def choose_precision(dtype: str) -> Precision:
    """Resolve a configured dtype: "float32", "bfloat16", "float16" or "auto".

    "auto" is bfloat16 on a GPU or CPU with instructions for it (AVX512-BF16, AMX), where it is 1.5 to 2 times
    as fast as float32, and float32 elsewhere, where bfloat16 would be emulated slowly.
    """
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if dtype == "auto":
        has_bf16 = torch.cuda.is_bf16_supported() if device.type == "cuda" else _cpu_has_bf16()
        dtype = "bfloat16" if has_bf16 else "float32"
    dtypes = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}
    return Precision(device, dtypes[dtype])


def weights_dtype(method: str, precision: Precision) -> torch.dtype:
    """Return the format in which the base is loaded: that of its products where it is frozen; float32 for the
    method "full", whose changes are often smaller than the rounding of bfloat16.
    """
    return torch.float32 if method == "full" else precision.dtype


def choose_attention(precision: Precision, longest_row_tokens: int) -> str:
    """Return the attention implementation (transformers' name) that is fastest for the rows at hand."""
    is_short = longest_row_tokens <= SHORT_ROW_TOKENS
    return "eager" if precision.device.type == "cpu" and is_short else "sdpa"


def _cpu_has_bf16() -> bool:
    capabilities = torch.cpu.get_capabilities()
    return bool(capabilities.get("avx512_bf16") or capabilities.get("amx_bf16") or capabilities.get("bf16"))
