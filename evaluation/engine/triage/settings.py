"""What decides a triage besides the samples: the prompts that are tried, the schema, the engine."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from evaluation.engine.backends.base import BackendConfig
from evaluation.engine.errors import Fault, describe_faults
from evaluation.engine.json_text import find_unstorable_text
from evaluation.engine.scoring.schema_validity import SchemaValidator
from evaluation.engine.suite import FewShot
from evaluation.engine.triage.errors import TriageInvalid
from registry.artifacts.findings import shown

MAX_PROMPTS: Final = 8
MAX_FEW_SHOT: Final = 32
MAX_PROMPT_CHARACTERS: Final = 50_000
MAX_NAME_CHARACTERS: Final = 80
DEFAULT_MAX_TOKENS: Final = 512
MAX_TOKENS: Final = 32768
"""As of a suite's sampling."""

_KEYS: Final = ("prompts", "output_schema", "max_tokens", "backend")
_PROMPT_KEYS: Final = ("name", "system_prompt", "few_shot")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCandidate:
    """A prompt that is tried.

    Attributes:
        name: Unique among the candidates.
        system_prompt: Replaces a system message of the samples; "" leaves them as they are.
        few_shot: Demonstrations before the sample.
    """

    name: str
    system_prompt: str
    few_shot: tuple[FewShot, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Return the form in which prompts are given."""
        shots = [{"user": shot.user, "assistant": shot.assistant} for shot in self.few_shot]
        return {"name": self.name, "system_prompt": self.system_prompt, "few_shot": shots}


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageConfig:
    """The settings of a triage.

    Attributes:
        prompts: At least one, at most ``MAX_PROMPTS``; the best by score is taken.
        output_schema: JSON Schema 2020-12 of a right JSON answer; None checks no schema.
        max_tokens: Limit of generated tokens.
        backend: The engine.
    """

    prompts: tuple[PromptCandidate, ...]
    output_schema: Mapping[str, Any] | None = None
    max_tokens: int = DEFAULT_MAX_TOKENS
    backend: BackendConfig = field(default_factory=BackendConfig)

    @classmethod
    def from_json(cls, document: Any) -> "TriageConfig":
        """Read the settings; keys that are left out take their defaults.

        Raises:
            TriageInvalid: With every fault (code ``triage-settings-invalid``).
        """
        faults: list[Fault] = []
        if not isinstance(document, Mapping):
            raise _invalid([Fault("settings-invalid", "the settings must be an object", "settings")])
        faults.extend(
            Fault("unknown-setting", f"there is no setting {shown(key)!r}", "settings")
            for key in document
            if key not in _KEYS
        )
        prompts = _read_prompts(document.get("prompts"), faults)
        schema = _read_schema(document.get("output_schema"), faults)
        max_tokens = document.get("max_tokens", DEFAULT_MAX_TOKENS)
        if (
            not isinstance(max_tokens, int)
            or isinstance(max_tokens, bool)
            or not 1 <= max_tokens <= MAX_TOKENS
        ):
            message = f"max_tokens must be a whole number from 1 to {MAX_TOKENS}"
            faults.append(Fault("max-tokens-invalid", message, "max_tokens"))
        backend = _read_backend(document.get("backend", {}), faults)
        if faults:
            raise _invalid(faults)
        return cls(prompts=prompts, output_schema=schema, max_tokens=max_tokens, backend=backend)

    def to_json(self) -> dict[str, Any]:
        """Return the settings with everything filled in."""
        return {
            "prompts": [prompt.to_json() for prompt in self.prompts],
            "output_schema": None if self.output_schema is None else dict(self.output_schema),
            "max_tokens": self.max_tokens,
            "backend": self.backend.to_json(),
        }


def _invalid(faults: Sequence[Fault]) -> TriageInvalid:
    return TriageInvalid(
        "triage-settings-invalid", f"the triage cannot be run: {describe_faults(faults)}", faults=faults
    )


def _read_prompts(document: Any, faults: list[Fault]) -> tuple[PromptCandidate, ...]:
    if not isinstance(document, list) or not 1 <= len(document) <= MAX_PROMPTS:
        message = f"prompts must be a list of 1 to {MAX_PROMPTS} prompts"
        faults.append(Fault("prompts-invalid", message, "prompts"))
        return ()
    read = [_read_prompt(item, f"prompts/{number}", faults) for number, item in enumerate(document)]
    prompts = tuple(prompt for prompt in read if prompt is not None)
    names = [prompt.name for prompt in prompts]
    if len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        message = f"the name {shown(twice[0])!r} is used twice"
        faults.append(Fault("prompt-name-twice", message, "prompts"))
    return prompts


def _read_prompt(item: Any, where: str, faults: list[Fault]) -> PromptCandidate | None:
    if not isinstance(item, Mapping):
        faults.append(Fault("prompt-invalid", "a prompt must be an object", where))
        return None
    before = len(faults)
    faults.extend(
        Fault("unknown-setting", f"a prompt has no {shown(key)!r}", where)
        for key in item
        if key not in _PROMPT_KEYS
    )
    name, text = item.get("name"), item.get("system_prompt", "")
    if not isinstance(name, str) or not name.strip() or len(name) > MAX_NAME_CHARACTERS:
        message = f"name must be a text of 1 to {MAX_NAME_CHARACTERS} characters"
        faults.append(Fault("prompt-invalid", message, where))
    if not isinstance(text, str) or len(text) > MAX_PROMPT_CHARACTERS:
        message = f"system_prompt must be a text of at most {MAX_PROMPT_CHARACTERS} characters"
        faults.append(Fault("prompt-invalid", message, where))
    if (reason := find_unstorable_text(dict(item))) is not None:
        faults.append(Fault("prompt-invalid", f"a text of the prompt {reason}", where))
    few_shot = _read_few_shot(item.get("few_shot", []), where, faults)
    if len(faults) > before:
        return None
    return PromptCandidate(name=str(name), system_prompt=str(text), few_shot=few_shot)


def _read_few_shot(document: Any, where: str, faults: list[Fault]) -> tuple[FewShot, ...]:
    is_list = isinstance(document, list) and len(document) <= MAX_FEW_SHOT
    if not is_list or not all(_is_shot(item) for item in document):
        message = (
            f"few_shot must be a list of at most {MAX_FEW_SHOT} objects with the texts user and assistant, "
            "neither of them empty"
        )
        faults.append(Fault("few-shot-invalid", message, where))
        return ()
    return tuple(FewShot(item["user"], item["assistant"]) for item in document)


def _is_shot(item: Any) -> bool:
    if not isinstance(item, Mapping) or item.keys() != {"user", "assistant"}:
        return False
    texts = item.values()
    return all(
        isinstance(text, str) and text.strip() and len(text) <= MAX_PROMPT_CHARACTERS for text in texts
    )


def _read_schema(document: Any, faults: list[Fault]) -> Mapping[str, Any] | None:
    if document is None:
        return None
    if not isinstance(document, Mapping):
        faults.append(Fault("output-schema-invalid", "output_schema must be an object", "output_schema"))
        return None
    try:
        SchemaValidator(document)
    except ValueError as error:
        message = f"is no valid JSON Schema: {shown(error)}"
        faults.append(Fault("output-schema-invalid", message, "output_schema"))
    return document


def _read_backend(document: Any, faults: list[Fault]) -> BackendConfig:
    try:
        if not isinstance(document, Mapping):
            raise TypeError("must be an object")
        return BackendConfig.from_json(document)
    except (TypeError, ValueError) as error:
        faults.append(Fault("backend-invalid", shown(error), "backend"))
    return BackendConfig()
