"""What a backend takes and gives. No engine is imported here: these types are used on both sides of the
process border.

Decoding is greedy and explicit: max tokens and stop tokens come with each request, and the model's own
generation_config is never applied (DESIGN section 6).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, Protocol

BackendName = Literal["vllm", "transformers"]
FinishReason = Literal["stop", "length"]

ProgressCallback = Callable[[float, str], None]
"""Called with the fraction (0-1) that is done and a short message."""


class BackendError(Exception):
    """A backend cannot do what it was asked; ``code`` is stable, kebab-case."""

    def __init__(self, code: str, message: str) -> None:
        """Keep the code beside the message."""
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendConfig:
    """How an engine is started.

    Attributes:
        name: vllm, or transformers for machines without vLLM.
        dtype: Type of the weights at run time: bfloat16, float32, float16 or auto (as stored).
        max_model_len: Longest prompt + answer, in tokens.
        max_num_seqs: Sequences in one batch.
        gpu_memory_utilization: Fraction (0-1) of a GPU's memory that vLLM may take; unused on the CPU.
        tensor_parallel_size: GPUs that share one model.
        cpu_kv_cache_gib: Memory for vLLM's KV cache on the CPU; unused on a GPU.
        enforce_eager: No CUDA graphs and no compilation: slower, starts at once, and kernels do not depend
            on batch sizes that happened to be captured.
    """

    name: BackendName = "vllm"
    dtype: str = "auto"
    max_model_len: int = 2048
    max_num_seqs: int = 64
    gpu_memory_utilization: float = 0.85
    tensor_parallel_size: int = 1
    cpu_kv_cache_gib: int = 1
    enforce_eager: bool = True

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "BackendConfig":
        """Read the ``backend`` object of a job's configuration; keys that are left out take their defaults.

        Raises:
            ValueError: An unknown key, an unknown backend, or a number out of range.
        """
        unknown = set(document) - {item.name for item in fields(cls)}
        if unknown:
            raise ValueError(f"unknown backend settings: {', '.join(sorted(unknown))}")
        config = cls(**document)
        config.check()
        return config

    def check(self) -> None:
        """Check the ranges.

        Raises:
            ValueError: Naming the setting.
        """
        if self.name not in ("vllm", "transformers"):
            raise ValueError(f"backend name must be vllm or transformers, not {self.name!r}")
        if self.dtype not in ("auto", "bfloat16", "float16", "float32"):
            raise ValueError(f"dtype must be auto, bfloat16, float16 or float32, not {self.dtype!r}")
        for name in ("max_model_len", "max_num_seqs", "tensor_parallel_size", "cpu_kv_cache_gib"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1")
        if not 0 < self.gpu_memory_utilization <= 1:
            raise ValueError("gpu_memory_utilization must be above 0 and at most 1")

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterSource:
    """An adapter that is applied at run time.

    Attributes:
        path: Folder with adapter_config.json and adapter_model.safetensors.
        name: Holds the digest of the bytes: vLLM tells adapters apart by name only.
        rank: Highest rank among its tensors.
    """

    path: Path
    name: str
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """A prompt to be continued greedily.

    Attributes:
        request_id: Given back with the output.
        prompt_token_ids: The rendered prompt.
        max_tokens: Limit of generated tokens.
        stop_token_ids: Generation ends after any of these.
        num_logprobs: For each generated token also the log-probabilities of this many likeliest tokens; 0
            gives none.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    max_tokens: int
    stop_token_ids: tuple[int, ...]
    num_logprobs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationOutput:
    """What was generated.

    Attributes:
        request_id: Of the request.
        text: The output as a client sees it: no special tokens, no stop token.
        token_ids: Generated tokens, the stop token included.
        finish_reason: stop (a stop token came) or length (max_tokens came first).
        num_prompt_tokens: Length of the prompt.
        logprobs: For each generated token a map of token id to log-probability (nats): the likeliest tokens
            and the generated one. None when none were asked for.
    """

    request_id: str
    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason
    num_prompt_tokens: int
    logprobs: tuple[Mapping[int, float], ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuationRequest:
    """A prompt and one continuation of it, whose likelihood is asked for."""

    request_id: str
    prompt_token_ids: tuple[int, ...]
    continuation_token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContinuationScore:
    """Log-probability (nats) of each token of a continuation, given everything before it."""

    request_id: str
    token_logprobs: tuple[float, ...]


class Backend(Protocol):
    """A loaded model that generates and scores."""

    def generate(
        self, requests: Sequence[GenerationRequest], on_progress: ProgressCallback
    ) -> list[GenerationOutput]:
        """Continue every prompt greedily; outputs are in the order of the requests."""

    def score(
        self, requests: Sequence[ContinuationRequest], on_progress: ProgressCallback
    ) -> list[ContinuationScore]:
        """Score every continuation; scores are in the order of the requests."""

    def fingerprint(self) -> dict[str, Any]:
        """Return what the numbers depend on beside model and prompts: versions, dtype, device, kernel
        settings.
        """


def check_lengths(
    requests: Sequence[GenerationRequest], scored: Sequence[ContinuationRequest], max_model_len: int
) -> None:
    """Refuse requests that do not fit into the context, all at once.

    Raises:
        BackendError: ``prompt-too-long``, naming the requests.
    """
    too_long = [r.request_id for r in requests if len(r.prompt_token_ids) + r.max_tokens > max_model_len]
    too_long += [
        r.request_id
        for r in scored
        if len(r.prompt_token_ids) + len(r.continuation_token_ids) + 1 > max_model_len
    ]
    if too_long:
        raise BackendError(
            "prompt-too-long",
            f"{len(too_long)} requests do not fit into max_model_len {max_model_len}: "
            f"{', '.join(too_long[:10])}",
        )
