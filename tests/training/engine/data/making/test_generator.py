import hashlib

import pytest

from tests.training.engine.data.making.scripted import ScriptedGenerator
from training.engine.data.examples import ChatMessage
from training.engine.data.making.generator import (
    Generated,
    GenerationFailed,
    digest_prompt,
    generate_texts,
    read_teachers,
)
from training.engine.errors import ConfigInvalid

PROMPT = (ChatMessage("user", "Grüß"),)


def test_digest_of_a_prompt() -> None:
    # By hand: the compact ASCII JSON of role and text.
    assert digest_prompt(PROMPT) == hashlib.sha256(rb'[["user","Gr\u00fc\u00df"]]').hexdigest()
    assert digest_prompt(PROMPT) != digest_prompt((ChatMessage("system", "Grüß"),))


def test_every_prompt_gets_its_output() -> None:
    generator = ScriptedGenerator(lambda prompt: prompt[-1].content.upper())
    assert generate_texts(generator, [PROMPT], max_tokens=5) == [Generated("GRÜSS")]
    assert generate_texts(generator, [], max_tokens=5) == []
    assert len(generator.calls) == 1


def test_outputs_that_are_missing() -> None:
    class Forgetful(ScriptedGenerator):
        def generate(self, prompts, *, max_tokens):  # type: ignore[no-untyped-def]
            return []

    with pytest.raises(GenerationFailed, match="0 outputs for 1 prompts") as caught:
        generate_texts(Forgetful(str), [PROMPT], max_tokens=5)
    assert caught.value.code == "outputs-missing"


def test_reads_teachers() -> None:
    (teacher,) = read_teachers([{"name": "big", "model": "m@1", "instruction_variants": ["Do.", "Do it."]}])
    generator = ScriptedGenerator(str)
    bound = teacher.bind(generator)
    assert (bound.name, bound.generator, bound.instruction_variants) == ("big", generator, ("Do.", "Do it."))


def test_all_faults_of_teachers_at_once() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read_teachers(
            [
                {"name": "a", "model": "m", "instruction_variants": ["x"]},
                {"name": "a", "model": "m", "instruction_variants": ["x", "x"]},
                {"name": "b", "modle": "m"},
                {"name": "c", "model": "m"},
                7,
            ]
        )
    assert [(fault.code, fault.where) for fault in caught.value.faults] == [
        ("invalid-value", "teachers.1.instruction_variants"),
        ("duplicate-name", "teachers.1.name"),
        ("unknown-key", "teachers.2.modle"),
        ("missing-key", "teachers.3.instruction_variants"),
        ("wrong-type", "teachers.4"),
    ]
    nothing: list[object] = [[], None, "x"]
    for raw in nothing:
        with pytest.raises(ConfigInvalid, match="at least one teacher"):
            read_teachers(raw)
