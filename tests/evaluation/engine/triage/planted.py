"""Samples and outputs with a planted fault, put together as the runner does it."""

import json
from collections.abc import Sequence
from typing import Any

from evaluation.engine.scoring.behaviour import observe_behaviour
from evaluation.engine.scoring.schema_validity import SchemaValidator
from evaluation.engine.triage.judging import Answer, JudgedAnswer, judge_answer
from evaluation.engine.triage.samples import Sample, parse_samples
from evaluation.engine.triage.sorting import Sorting, sort_answers
from evaluation.engine.triage.values import build_label_space

Line = dict[str, Any]


def line(number: int, question: str, reference: Any, **extra: Any) -> Line:
    """A sample's line; a reference that is no text becomes JSON."""
    answer = reference if isinstance(reference, str) else json.dumps(reference, ensure_ascii=False)
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return {"id": f"s{number}", "messages": messages, "reference_source": "person", **extra}


def samples_of(lines: Sequence[Line]) -> tuple[Sample, ...]:
    return parse_samples([json.dumps(item).encode() for item in lines]).samples


def judge_all(
    lines: Sequence[Line],
    outputs: Sequence[str],
    *,
    prompt: str = "",
    schema: dict[str, Any] | None = None,
    finish_reason: str = "stop",
) -> list[tuple[JudgedAnswer, Sorting]]:
    """Judge one output for each line and sort the failures."""
    samples = samples_of(lines)
    space = build_label_space(samples, schema)
    validator = None if schema is None else SchemaValidator(schema)
    judged = [
        judge_answer(
            sample,
            Answer(
                text=output,
                finish_reason=finish_reason,
                num_tokens=len(output.split()),
                behaviour=observe_behaviour(raw_text=output, finish_reason=finish_reason, special_tokens=()),
                told=f"{prompt}\n{sample.input_text}",
            ),
            validator=validator,
            space=space,
        )
        for sample, output in zip(samples, outputs, strict=True)
    ]
    return list(zip(judged, sort_answers(judged, space), strict=True))


def sort_one(sample: Line, output: str, **options: Any) -> tuple[JudgedAnswer, Sorting]:
    """Judge and sort one output alone."""
    return judge_all([sample], [output], **options)[0]
