"""vLLM, offline: base and merged models as they are, an adapter through a LoRARequest.

Checked against vLLM 0.32 (FACTS section 3). Runs only in a process of its own
(``evaluation.engine.generation``), which has set the environment that vLLM reads when it is imported.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import torch
from tqdm import tqdm  # type: ignore[import-untyped,unused-ignore]
from vllm import LLM, RequestOutput, SamplingParams, TokensPrompt
from vllm.lora.request import LoRARequest

from evaluation.engine.backends.base import (
    AdapterSource,
    BackendConfig,
    BackendError,
    ContinuationRequest,
    ContinuationScore,
    FinishReason,
    GenerationOutput,
    GenerationRequest,
    ProgressCallback,
    check_lengths,
)
from evaluation.engine.backends.fingerprint import engine_fingerprint
from evaluation.engine.backends.lora_rank import allowed_lora_rank

_FINISH_REASONS: Final[dict[str | None, FinishReason]] = {"stop": "stop", "length": "length"}


class VllmBackend:
    """One vLLM engine with one model, and at most one adapter that every request goes through."""

    def __init__(self, model: Path, adapter: AdapterSource | None, config: BackendConfig) -> None:
        """Load the model; takes seconds to minutes.

        Args:
            model: Folder of the base or merged model.
            adapter: Applied to every request; None for the bare model.
            config: Settings of the engine.
        """
        lora: dict[str, Any] = {}
        self._lora_request: LoRARequest | None = None
        if adapter is not None:
            lora = {"enable_lora": True, "max_loras": 1, "max_lora_rank": allowed_lora_rank(adapter.rank)}
            self._lora_request = LoRARequest(adapter.name, 1, str(adapter.path))
        self._config = config
        self._llm = LLM(
            model=str(model),
            dtype=config.dtype,
            max_model_len=config.max_model_len,
            max_num_seqs=config.max_num_seqs,
            tensor_parallel_size=config.tensor_parallel_size,
            gpu_memory_utilization=config.gpu_memory_utilization,
            enforce_eager=config.enforce_eager,
            generation_config="vllm",
            trust_remote_code=False,
            seed=0,
            disable_log_stats=True,
            **lora,
        )

    def generate(
        self, requests: Sequence[GenerationRequest], on_progress: ProgressCallback
    ) -> list[GenerationOutput]:
        """Continue every prompt greedily, in one call so that vLLM batches as it likes.

        Raises:
            BackendError: A prompt does not fit (``prompt-too-long``).
        """
        check_lengths(requests, (), self._config.max_model_len)
        params = [
            SamplingParams(
                temperature=0.0,
                max_tokens=request.max_tokens,
                stop_token_ids=list(request.stop_token_ids),
                logprobs=request.num_logprobs or None,
                skip_special_tokens=True,
                seed=0,
            )
            for request in requests
        ]
        prompts = [TokensPrompt(prompt_token_ids=list(request.prompt_token_ids)) for request in requests]
        outputs = self._run(prompts, params, on_progress)
        return [
            _generation_output(request, output) for request, output in zip(requests, outputs, strict=True)
        ]

    def score(
        self, requests: Sequence[ContinuationRequest], on_progress: ProgressCallback
    ) -> list[ContinuationScore]:
        """Score every continuation through prompt log-probabilities.

        vLLM drops a LoRA on lm_head for prompt log-probabilities (vllm 51594); intake refuses such adapters
        for the adapter form.

        Raises:
            BackendError: A prompt does not fit (``prompt-too-long``).
        """
        check_lengths((), requests, self._config.max_model_len)
        prompts = [
            TokensPrompt(prompt_token_ids=[*request.prompt_token_ids, *request.continuation_token_ids])
            for request in requests
        ]
        # vLLM generates at least one token; prompt_logprobs=0 gives those of the prompt's own tokens alone.
        params = [
            SamplingParams(temperature=0.0, max_tokens=1, prompt_logprobs=0, detokenize=False)
            for _ in requests
        ]
        outputs = self._run(prompts, params, on_progress)
        return [
            _continuation_score(request, output) for request, output in zip(requests, outputs, strict=True)
        ]

    def fingerprint(self) -> dict[str, Any]:
        """Describe the engine, with the dtype that vLLM chose."""
        dtype = self._llm.llm_engine.model_config.dtype
        name = str(dtype).removeprefix("torch.") if isinstance(dtype, torch.dtype) else str(dtype)
        return engine_fingerprint(self._config, name)

    def _run(
        self, prompts: list[TokensPrompt], params: list[SamplingParams], on_progress: ProgressCallback
    ) -> list[RequestOutput]:
        if not prompts:
            return []

        def progress_bar(*items: Any, **kwargs: Any) -> Any:
            # vLLM also wraps the list of prompts in a bar while it queues them, which takes no time worth
            # telling.
            return tqdm(*items, disable=True) if items else _ProgressBar(on_progress, **kwargs)

        outputs: list[RequestOutput] = self._llm.generate(
            prompts, params, lora_request=self._lora_request, use_tqdm=progress_bar
        )
        return outputs


class _ProgressBar(tqdm):  # type: ignore[type-arg,misc,unused-ignore]
    """Stands in for vLLM's progress bar and reports instead of drawing."""

    def __init__(self, on_progress: ProgressCallback, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "mininterval": 1.0, "miniters": 1})
        self._on_progress = on_progress

    def display(self, *_args: Any, **_kwargs: Any) -> bool:
        if self.total and hasattr(self, "_on_progress"):
            self._on_progress(self.n / self.total, f"{self.n} of {self.total}")
        return True


def _generation_output(request: GenerationRequest, output: RequestOutput) -> GenerationOutput:
    completion = output.outputs[0]
    finish_reason = _FINISH_REASONS.get(completion.finish_reason)
    if finish_reason is None:
        raise BackendError(
            "unexpected-finish", f"vLLM ended {request.request_id} with reason {completion.finish_reason!r}"
        )
    logprobs = None
    if request.num_logprobs:
        logprobs = tuple(
            {int(token): float(entry.logprob) for token, entry in position.items()}
            for position in completion.logprobs or ()
        )
    return GenerationOutput(
        request_id=request.request_id,
        text=completion.text,
        token_ids=tuple(completion.token_ids),
        finish_reason=finish_reason,
        num_prompt_tokens=len(request.prompt_token_ids),
        logprobs=logprobs,
    )


def _continuation_score(request: ContinuationRequest, output: RequestOutput) -> ContinuationScore:
    start = len(request.prompt_token_ids)
    positions = (output.prompt_logprobs or [])[start:]
    if len(positions) != len(request.continuation_token_ids):
        raise BackendError("logprobs-missing", f"vLLM gave no log-probabilities for {request.request_id}")
    values = []
    for token, position in zip(request.continuation_token_ids, positions, strict=True):
        if position is None or token not in position:
            raise BackendError(
                "logprobs-missing", f"vLLM gave no log-probability for a token of {request.request_id}"
            )
        values.append(float(position[token].logprob))
    return ContinuationScore(request_id=request.request_id, token_logprobs=tuple(values))
