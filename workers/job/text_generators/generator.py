"""Prompts to texts: chats are rendered and limited as in the evaluation, and answered by one backend.

A prompt that cannot be asked, because it is too long or the chat template refuses it, is answered by a fault
and stops nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from evaluation.engine.backends.base import (
    BackendConfig,
    GenerationOutput,
    GenerationRequest,
    ProgressCallback,
)
from evaluation.engine.errors import PromptError
from evaluation.engine.examples import Message
from evaluation.engine.prompts import decode_raw, render_prompt
from registry.artifacts.findings import shown
from training.engine.data.examples import ChatMessage
from training.engine.data.making.generator import Generated, Prompt, TextGenerator
from training.engine.data.making.structured_answers import strip_outer_fence
from workers.job.text_generators.local_model import LocalModel

TOO_LONG = "prompt-too-long"
"""Fault of prompts that do not fit into the engine's context together with their longest answer."""
TEMPLATE_REFUSED = "template-refused"
"""Fault of prompts that the chat template refuses, such as a system message where it knows none."""


class GeneratingBackend(Protocol):
    """The part of ``evaluation.engine.backends.base.Backend`` that is used."""

    def generate(
        self, requests: Sequence[GenerationRequest], on_progress: ProgressCallback
    ) -> list[GenerationOutput]:
        """Continue every prompt greedily; outputs are in the order of the requests."""

    def fingerprint(self) -> dict[str, Any]:
        """Return what the outputs depend on beside model and prompts, with its ``digest``."""


class BackendGenerator:
    """A ``TextGenerator`` of data making (``training.engine.data.making.generator``) over a backend.

    Args:
        model: Whose tokenizer and template render the prompts.
        backend: The same model, loaded or loadable.
        config: The backend's settings.
        on_progress: Takes the progress of each call.
    """

    def __init__(
        self,
        model: LocalModel,
        backend: GeneratingBackend,
        config: BackendConfig,
        on_progress: ProgressCallback,
    ) -> None:
        self._model = model
        self._backend = backend
        self._config = config
        self._on_progress = on_progress
        self._not_asked: Counter[str] = Counter()
        self._refusal: str | None = None
        self._num_prompts = self._num_cut = self._num_output_tokens = 0

    @property
    def identity(self) -> Mapping[str, Any]:
        """Name and digest of the model, name and fingerprint digest of the engine; may start the engine."""
        return {
            "model": self._model.name,
            "digest": self._model.digest,
            "backend": self._config.name,
            "engine": self._backend.fingerprint()["digest"],
        }

    def generate(self, prompts: Sequence[Prompt], *, max_tokens: int) -> list[Generated]:
        """Answers every prompt, in one call of the backend.

        Returns:
            Texts with special tokens spelled out, so that what is left over of a chat template is seen, and
            without the stop token; or an empty text with its fault.
        """
        rendered = [self._render(prompt, max_tokens) for prompt in prompts]
        requests = [
            GenerationRequest(
                request_id=str(place),
                prompt_token_ids=token_ids,
                max_tokens=max_tokens,
                stop_token_ids=self._model.chat.stop_token_ids,
            )
            for place, token_ids in enumerate(rendered)
            if not isinstance(token_ids, str)
        ]
        outputs = self._backend.generate(requests, self._on_progress) if requests else []
        by_place = {output.request_id: output for output in outputs}
        self._count(rendered, outputs)
        return [
            Generated(text="", is_complete=False, fault=token_ids)
            if isinstance(token_ids, str)
            else self._read(by_place[str(place)])
            for place, token_ids in enumerate(rendered)
        ]

    def facts(self) -> dict[str, Any]:
        """Returns for a report: ``identity``, ``fingerprint``, how many prompts there were, how many of them
        were not asked by reason, how many answers were cut at their limit, how many tokens were generated,
        and what the chat template said when it refused first (None when it never did).
        """
        return {
            "identity": dict(self.identity),
            "fingerprint": self._backend.fingerprint(),
            "num_prompts": self._num_prompts,
            "not_asked": dict(sorted(self._not_asked.items())),
            "num_cut": self._num_cut,
            "num_output_tokens": self._num_output_tokens,
            "template_refusal": self._refusal,
        }

    def _render(self, prompt: Prompt, max_tokens: int) -> tuple[int, ...] | str:
        """Returns the token ids of a prompt, or the fault for which it cannot be asked."""
        messages = [Message(message.role, message.content) for message in prompt]
        try:
            token_ids = render_prompt(self._model.chat, messages).token_ids
        except PromptError as error:
            if error.code != TEMPLATE_REFUSED:
                raise
            self._refusal = self._refusal or shown(error.message)
            return TEMPLATE_REFUSED
        return TOO_LONG if len(token_ids) + max_tokens > self._config.max_model_len else token_ids

    def _read(self, output: GenerationOutput) -> Generated:
        text = decode_raw(self._model.chat, output.token_ids)
        return Generated(text=text, is_complete=output.finish_reason == "stop")

    def _count(self, rendered: Sequence[tuple[int, ...] | str], outputs: Sequence[GenerationOutput]) -> None:
        self._num_prompts += len(rendered)
        self._not_asked.update(item for item in rendered if isinstance(item, str))
        self._num_cut += sum(output.finish_reason == "length" for output in outputs)
        self._num_output_tokens += sum(len(output.token_ids) for output in outputs)


class ReplyGenerator:
    """The ``TextGenerator`` of the screening (``cleaning.sensitive.model_pass``), whose replies are texts.

    A reply that was cut or never made is empty, which the screening counts as unanswered: the beginning of a
    list of findings must not pass for all of it. One code fence around a whole reply is taken off, since many
    models put one around JSON.
    """

    def __init__(self, generator: TextGenerator) -> None:
        self._generator = generator

    def generate(self, prompts: Sequence[tuple[ChatMessage, ...]], *, max_tokens: int) -> list[str]:
        """Returns one reply for each prompt, in their order."""
        outputs = self._generator.generate(prompts, max_tokens=max_tokens)
        return [strip_outer_fence(output.text) if output.is_complete else "" for output in outputs]
