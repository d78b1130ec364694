"""Ranks that vLLM serves. Apart from the backend, so that they can be known without loading vLLM."""

from typing import Final

from evaluation.engine.backends.base import BackendError

ALLOWED_MAX_LORA_RANKS: Final = (1, 8, 16, 32, 64, 128, 256, 320, 512)
"""Values that vLLM 0.32 takes for max_lora_rank (``vllm.config.lora.MaxLoRARanks``)."""


def allowed_lora_rank(rank: int) -> int:
    """Return the smallest max_lora_rank that vLLM takes and that holds this rank.

    Raises:
        BackendError: The rank is too high for vLLM (``adapter-rank-too-high``).
    """
    for allowed in ALLOWED_MAX_LORA_RANKS:
        if rank <= allowed:
            return allowed
    highest = ALLOWED_MAX_LORA_RANKS[-1]
    raise BackendError("adapter-rank-too-high", f"vLLM serves adapters up to rank {highest}, not {rank}")
