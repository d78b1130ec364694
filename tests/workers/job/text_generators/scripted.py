"""A backend whose answers are written down, over the real tokenizer of a tiny model."""

from collections.abc import Callable, Sequence
from typing import Any

from evaluation.engine.backends.base import GenerationOutput, GenerationRequest, ProgressCallback
from evaluation.engine.prompts import ChatTokenizer

FINGERPRINT = {"backend": "scripted", "digest": "f" * 64}


class ScriptedBackend:
    """Answers by a function of the rendered prompt; an answer that ends with END ends by the stop token,
    another one at its limit.
    """

    END = "<end>"

    def __init__(self, tokenizer: ChatTokenizer, answer: Callable[[str], str]) -> None:
        self._tokenizer = tokenizer
        self._answer = answer
        self.calls: list[list[GenerationRequest]] = []
        self.num_fingerprints = 0

    def generate(
        self, requests: Sequence[GenerationRequest], on_progress: ProgressCallback
    ) -> list[GenerationOutput]:
        self.calls.append(list(requests))
        on_progress(1.0, "scripted")
        return [self._output(request) for request in requests]

    def fingerprint(self) -> dict[str, Any]:
        self.num_fingerprints += 1
        return dict(FINGERPRINT)

    def _output(self, request: GenerationRequest) -> GenerationOutput:
        answer = self._answer(str(self._tokenizer.decode(list(request.prompt_token_ids))))
        ends = answer.endswith(self.END)
        ids = self._tokenizer.encode(answer.removesuffix(self.END), add_special_tokens=False)
        return GenerationOutput(
            request_id=request.request_id,
            text="unused: it lacks special tokens",
            token_ids=(*ids, request.stop_token_ids[0]) if ends else tuple(ids),
            finish_reason="stop" if ends else "length",
            num_prompt_tokens=len(request.prompt_token_ids),
        )
