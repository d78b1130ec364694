import json
from typing import Any

import pytest

from evaluation.engine.triage.errors import TriageInvalid
from evaluation.engine.triage.samples import FEW_SAMPLES, MAX_SAMPLES, parse_samples
from evaluation.engine.triage.settings import MAX_PROMPTS, TriageConfig
from tests.evaluation.engine.triage.planted import line


def parse(*lines: Any) -> Any:
    return parse_samples([json.dumps(item).encode() for item in lines])


def codes_of(error: TriageInvalid) -> list[str]:
    return [fault.code for fault in error.faults]


def test_what_a_sample_is() -> None:
    parsed = parse(
        line(1, "q", {"a": 1}),
        line(2, "q", "urgent"),
        line(3, "q", "x" * 81),
        line(4, "q", "x" * 81, checks={"required_points": ["x"]}),
        line(5, "q", "x" * 81, scoring={"type": "contains", "values": ["x"]}),
    )
    kinds = [(s.is_structured, s.is_label, s.is_open) for s in parsed.samples]
    assert kinds == [
        (True, False, False), (False, True, False), (False, False, True),
        (False, False, False), (False, False, False),
    ]  # fmt: skip


def test_warnings() -> None:
    lines = [line(number, "q", "yes") for number in range(FEW_SAMPLES - 1)]
    lines[0]["reference_source"] = "model"
    lines[1] = line(1, "q", "open " * 30)
    codes = [warning.code for warning in parse(*lines).warnings]
    assert codes == ["few-samples", "open-reference", "reference-unverified"]
    assert parse(*(line(number, "q", "yes") for number in range(FEW_SAMPLES))).warnings == ()


def test_too_many_are_refused() -> None:
    with pytest.raises(TriageInvalid) as caught:
        parse(*(line(number, "q", "yes") for number in range(MAX_SAMPLES + 1)))
    assert codes_of(caught.value) == ["too-many-samples"]


def test_every_fault_at_once() -> None:
    with pytest.raises(TriageInvalid) as caught:
        parse(
            {"id": "a", "messages": [{"role": "user", "content": "q"}]},
            line(2, "q", "a", checks={"required_points": "x", "colour": 1, "max_characters": 0}),
            line(3, "q", "a", scoring={"type": "choice", "answer": "A", "choices": ["x", "y"]}),
            line(4, "q", "a", scoring={"type": "magic"}),
        )
    codes = codes_of(caught.value)
    assert codes.count("checks-invalid") == 3 and codes.count("scoring-invalid") == 2
    assert "missing-reference" in codes


def test_settings_and_their_round_trip() -> None:
    prompt = {"name": "a", "system_prompt": "Answer.", "few_shot": [{"user": "1", "assistant": "2"}]}
    config = TriageConfig.from_json({"prompts": [prompt], "max_tokens": 64})
    assert TriageConfig.from_json(config.to_json()) == config
    assert config.to_json()["prompts"] == [prompt]


def test_faults_of_settings_come_together() -> None:
    with pytest.raises(TriageInvalid) as caught:
        TriageConfig.from_json(
            {
                "prompts": [
                    {"name": ""},
                    {"name": "a"},
                    {"name": "a"},
                    {"name": "b", "few_shot": [{"user": "x"}]},
                ],
                "output_schema": {"type": "nonsense"},
                "max_tokens": True,
                "backend": {"name": "magic"},
                "colour": 1,
            }
        )
    assert sorted(codes_of(caught.value)) == [
        "backend-invalid", "few-shot-invalid", "max-tokens-invalid", "output-schema-invalid",
        "prompt-invalid", "prompt-name-twice", "unknown-setting",
    ]  # fmt: skip


@pytest.mark.parametrize("prompts", [None, [], "x", [{"name": str(n)} for n in range(MAX_PROMPTS + 1)]])
def test_the_number_of_prompts(prompts: Any) -> None:
    with pytest.raises(TriageInvalid) as caught:
        TriageConfig.from_json({"prompts": prompts})
    assert "prompts-invalid" in codes_of(caught.value)
