"""transformers, for machines without vLLM: batched greedy decoding with left padding; adapters through
peft.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from evaluation.engine.backends.base import (
    AdapterSource,
    BackendConfig,
    ContinuationRequest,
    ContinuationScore,
    FinishReason,
    GenerationOutput,
    GenerationRequest,
    ProgressCallback,
    check_lengths,
)
from evaluation.engine.backends.fingerprint import engine_fingerprint


class TransformersBackend:
    """One model on one device, with at most one adapter.

    Shapes: B sequences, T tokens, V vocabulary entries.
    """

    def __init__(self, model: Path, adapter: AdapterSource | None, config: BackendConfig) -> None:
        """Load the model.

        Args:
            model: Folder of the base or merged model.
            adapter: Applied at run time, not merged; None for the bare model.
            config: ``max_num_seqs`` is the batch size, ``dtype`` the type of the weights.
        """
        self._config = config
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            model, dtype=config.dtype, local_files_only=True, trust_remote_code=False
        )
        if adapter is not None:
            from peft import PeftModel

            loaded = PeftModel.from_pretrained(loaded, adapter.path, is_trainable=False)
        self._model: Any = loaded.to(self._device).eval()
        self._tokenizer: Any = AutoTokenizer.from_pretrained(
            model, local_files_only=True, trust_remote_code=False
        )
        # generate() fills what a request leaves open from here: nothing of the model's own may be left.
        self._model.generation_config = GenerationConfig()

    def generate(
        self, requests: Sequence[GenerationRequest], on_progress: ProgressCallback
    ) -> list[GenerationOutput]:
        """Continue every prompt greedily, in batches of similar length.

        Raises:
            BackendError: A prompt does not fit (``prompt-too-long``).
        """
        check_lengths(requests, (), self._config.max_model_len)
        outputs: dict[int, GenerationOutput] = {}
        for batch in _batches(requests, self._config.max_num_seqs):
            outputs.update(zip(batch, self._generate_batch([requests[i] for i in batch]), strict=True))
            on_progress(len(outputs) / len(requests), f"{len(outputs)} of {len(requests)}")
        return [outputs[index] for index in range(len(requests))]

    def score(
        self, requests: Sequence[ContinuationRequest], on_progress: ProgressCallback
    ) -> list[ContinuationScore]:
        """Score every continuation by a forward pass over prompt and continuation.

        Raises:
            BackendError: A prompt does not fit (``prompt-too-long``).
        """
        check_lengths((), requests, self._config.max_model_len)
        scores: list[ContinuationScore] = []
        for request in requests:
            scores.append(self._score_one(request))
            on_progress(len(scores) / len(requests), f"{len(scores)} of {len(requests)}")
        return scores

    def fingerprint(self) -> dict[str, Any]:
        """Describe the engine, with the dtype of the loaded weights."""
        return engine_fingerprint(self._config, str(self._model.dtype).removeprefix("torch."))

    @torch.inference_mode()
    def _generate_batch(self, batch: Sequence[GenerationRequest]) -> list[GenerationOutput]:
        stop = batch[0].stop_token_ids
        pad = stop[0]
        width = max(len(request.prompt_token_ids) for request in batch)
        padding = [width - len(request.prompt_token_ids) for request in batch]
        ids = torch.tensor(
            [[pad] * n + list(r.prompt_token_ids) for n, r in zip(padding, batch, strict=True)],
            device=self._device,
        )
        mask = torch.tensor([[0] * n + [1] * (width - n) for n in padding], device=self._device)
        result = self._model.generate(
            input_ids=ids,
            attention_mask=mask,
            generation_config=GenerationConfig(
                do_sample=False,
                max_new_tokens=max(request.max_tokens for request in batch),
                eos_token_id=list(stop),
                pad_token_id=pad,
                output_logits=any(request.num_logprobs for request in batch),
                return_dict_in_generate=True,
            ),
        )
        generated = result.sequences[:, width:].tolist()  # [B, T]
        return [
            self._output(
                request, generated[row], _row_logits(result.logits, row) if request.num_logprobs else None
            )
            for row, request in enumerate(batch)
        ]

    def _output(
        self, request: GenerationRequest, generated: list[int], logits: Sequence[torch.Tensor] | None
    ) -> GenerationOutput:
        token_ids, finish_reason = _cut_at_stop(generated[: request.max_tokens], request.stop_token_ids)
        shown = token_ids[:-1] if finish_reason == "stop" else token_ids
        logprobs = None
        if logits is not None:
            logprobs = tuple(
                _top_logprobs(position, token, request.num_logprobs)
                for token, position in zip(token_ids, logits, strict=False)
            )
        return GenerationOutput(
            request_id=request.request_id,
            text=self._tokenizer.decode(shown, skip_special_tokens=True),
            token_ids=tuple(token_ids),
            finish_reason=finish_reason,
            num_prompt_tokens=len(request.prompt_token_ids),
            logprobs=logprobs,
        )

    @torch.inference_mode()
    def _score_one(self, request: ContinuationRequest) -> ContinuationScore:
        tokens = [*request.prompt_token_ids, *request.continuation_token_ids]
        ids = torch.tensor([tokens], device=self._device)
        logits = self._model(input_ids=ids).logits[0].float()  # [T, V]
        start = len(request.prompt_token_ids)
        logprobs = torch.log_softmax(logits[start - 1 : -1], dim=-1)
        targets = ids[0, start:]
        values = logprobs.gather(1, targets[:, None])[:, 0]
        return ContinuationScore(request_id=request.request_id, token_logprobs=tuple(values.tolist()))


def _batches(requests: Sequence[GenerationRequest], size: int) -> Iterator[list[int]]:
    """Indexes of requests with the same limits, sorted by length so that little is padded."""
    order = sorted(range(len(requests)), key=lambda i: _batch_key(requests[i]))
    start = 0
    while start < len(order):
        end = start + 1
        first = _batch_key(requests[order[start]])[:2]
        while end < len(order) and end - start < size and _batch_key(requests[order[end]])[:2] == first:
            end += 1
        yield order[start:end]
        start = end


def _batch_key(request: GenerationRequest) -> tuple[int, tuple[int, ...], int]:
    return request.max_tokens, request.stop_token_ids, len(request.prompt_token_ids)


def _row_logits(logits: Sequence[torch.Tensor] | None, row: int) -> Sequence[torch.Tensor]:
    return [step[row] for step in logits or ()]


def _cut_at_stop(token_ids: list[int], stop: Sequence[int]) -> tuple[list[int], FinishReason]:
    for position, token in enumerate(token_ids):
        if token in stop:
            return token_ids[: position + 1], "stop"
    return token_ids, "length"


def _top_logprobs(logits: torch.Tensor, token: int, count: int) -> Mapping[int, float]:
    logprobs = torch.log_softmax(logits.float(), dim=-1)
    top = torch.topk(logprobs, count)
    pairs = zip(top.indices.tolist(), top.values.tolist(), strict=True)
    return {**dict(pairs), token: float(logprobs[token])}
