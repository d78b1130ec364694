"""Models that write texts, as data making needs them: one small protocol, and teachers made of it.

No engine is loaded here. Whoever runs a job wraps its engine so that it has ``identity`` and ``generate``;
tests use scripted ones.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from registry.artifacts.findings import shown
from training.engine.data.examples import ChatMessage
from training.engine.data.making.fault_lists import refuse_if_faulty
from training.engine.errors import ConfigInvalid, Fault, TrainingEngineError
from training.engine.settings_rules import NAMES, TEXT, Rule, read_section

Prompt = tuple[ChatMessage, ...]
"""A conversation that ends with the user's turn."""


class GenerationFailed(TrainingEngineError):
    """A generator did not keep to its protocol."""


@dataclass(frozen=True, slots=True)
class Generated:
    """One output.

    Attributes:
        text: What the model wrote, without its stop token; special tokens that it wrote in between should be
            spelled out, so that they are seen.
        is_complete: Whether the model ended by itself; False when it ran into ``max_tokens``.
        fault: Why the model was not asked at all, kebab-case, such as ``prompt-too-long``; "" when it was.
    """

    text: str
    is_complete: bool = True
    fault: str = ""


class TextGenerator(Protocol):
    """A model that answers prompts greedily: the same prompt gives the same text."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What its texts depend on besides prompts, as JSON: digest or name of the model, fingerprint of the
        engine. It goes into the origin of every example, so it should be short.
        """

    def generate(self, prompts: Sequence[Prompt], *, max_tokens: int) -> list[Generated]:
        """Answer every prompt; the outputs are in the order of the prompts.

        Called few times with many prompts, because a call may start an engine.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Teacher:
    """A model that makes candidate answers.

    Decoding is greedy, so several candidates of one teacher come from several instructions.

    Attributes:
        generator: The model.
        name: For reports and origins; unique among the teachers of a run.
        instruction_variants: System messages that ask for the same in other words, the best first.
            ``{system}`` in one stands for the example's own system message, ``{schema}`` for the JSON Schema
            of the answer. Expressions that the teacher overuses are best forbidden here.
    """

    generator: TextGenerator
    name: str
    instruction_variants: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TeacherSettings:
    """A teacher as people declare it.

    Attributes:
        name: As in ``Teacher``.
        model: Which model it is, in words of whoever loads it.
        instruction_variants: As in ``Teacher``; at least one, all different.
    """

    name: str
    model: str
    instruction_variants: tuple[str, ...]

    def bind(self, generator: TextGenerator) -> Teacher:
        """Return the teacher with its loaded model."""
        return Teacher(generator=generator, name=self.name, instruction_variants=self.instruction_variants)


_TEACHER_RULES: Mapping[str, Rule] = {"name": TEXT, "model": TEXT, "instruction_variants": NAMES}


def read_teachers(raw: Any) -> tuple[TeacherSettings, ...]:
    """Read a list of ``{"name", "model", "instruction_variants"}``.

    Raises:
        ConfigInvalid: ``teachers-invalid`` with every fault: no teacher, a missing or unknown key, a wrong
            value, a name used twice.
    """
    faults: list[Fault] = []
    if not isinstance(raw, list | tuple) or not raw:
        faults.append(
            Fault(code="wrong-type", message="must be a list of at least one teacher", where="teachers")
        )
        raw = ()
    teachers: list[TeacherSettings] = []
    for number, item in enumerate(raw):
        where = f"teachers.{number}"
        num_before = len(faults)
        values = read_section(where, item, _TEACHER_RULES, faults)
        if len(faults) == num_before:
            missing = [name for name in _TEACHER_RULES if name not in values]
            faults += [
                Fault(code="missing-key", message="is missing", where=f"{where}.{name}") for name in missing
            ]
        if any(teacher.name == values.get("name") for teacher in teachers):
            message = f"the name {shown(values['name'])!r} is used twice"
            faults.append(Fault(code="duplicate-name", message=message, where=f"{where}.name"))
        if len(faults) == num_before:
            teachers.append(TeacherSettings(**values))
    refuse_if_faulty(ConfigInvalid, "teachers-invalid", "The list of teachers", faults)
    return tuple(teachers)


def generate_texts(
    generator: TextGenerator, prompts: Sequence[Prompt], *, max_tokens: int
) -> list[Generated]:
    """Ask a generator and check that every prompt got its output; no prompt is no call.

    Raises:
        GenerationFailed: ``outputs-missing`` when the numbers differ.
    """
    if not prompts:
        return []
    outputs = generator.generate(prompts, max_tokens=max_tokens)
    if len(outputs) != len(prompts):
        raise GenerationFailed(
            "outputs-missing",
            f"The generator gave {len(outputs)} outputs for {len(prompts)} prompts; it must give one each.",
        )
    return outputs


def digest_prompt(prompt: Prompt) -> str:
    """Return the sha256 (64 hexadecimal digits) of a prompt's roles and texts."""
    turns = [[message.role, message.content] for message in prompt]
    text = json.dumps(turns, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
