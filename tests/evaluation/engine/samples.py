"""A small suite for tests of the engine: tickets with two fields."""

import json
from pathlib import Path
from typing import Any


def suite_document(**changes: Any) -> dict[str, Any]:
    """Return a sound suite definition with the given top-level keys replaced."""
    document: dict[str, Any] = {
        "name": "tickets",
        "description": "for tests",
        "system_prompt": "Answer as JSON.",
        "baseline": {
            "system_prompt": "Give JSON with type and urgency.",
            "few_shot": [{"user": "Screen is black", "assistant": '{"type":"bug","urgency":"high"}'}],
        },
        "output_schema": {
            "type": "object",
            "properties": {"type": {"enum": ["bug", "question"]}, "urgency": {"enum": ["low", "high"]}},
            "required": ["type", "urgency"],
            "additionalProperties": False,
        },
        "scoring": {
            "type": "json_fields",
            "fields": {"type": {"key": True}, "urgency": {"normalise": ["strip"]}},
        },
        "sampling": {"max_tokens": 8, "regression_max_tokens": 6, "temperature": 0.0},
        "min_score": 0.8,
        "shipping_form": "merged",
    }
    return {**document, **changes}


def task_line(number: int, text: str, **extra: Any) -> dict[str, Any]:
    """Return a task example."""
    reference = json.dumps({"type": "bug", "urgency": "low" if number % 2 else "high"})
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": reference}]
    return {"id": f"t{number}", "messages": messages, "reference_source": "person", **extra}


def write_suite(folder: Path, document: dict[str, Any] | None = None, num: int = 3) -> Path:
    """Write a suite folder with ``num`` examples a set and two regression examples, and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "suite.json").write_text(json.dumps(suite_document() if document is None else document))
    write_lines(folder / "holdout.jsonl", [task_line(i, f"Printer {i} is broken") for i in range(num)])
    write_lines(folder / "ood.jsonl", [task_line(i, f"printer{i} kaputt!!") for i in range(num)])
    write_lines(
        folder / "canary.jsonl",
        [{"id": f"c{i}", "messages": [{"role": "user", "content": f"odd {i}"}]} for i in range(num)],
    )
    question = [{"role": "user", "content": "2 + 2?\nA. three\nB. four"}]
    choice = {"type": "choice", "answer": "B", "choices": ["three", "four"], "question": "2 + 2?"}
    open_rule = {"type": "regex", "pattern": r"\w"}
    write_lines(
        folder / "regression.jsonl",
        [
            {
                "id": "r0",
                "dimension": "arithmetic",
                "messages": question,
                "reference": "four",
                "scoring": choice,
            },
            {
                "id": "r1",
                "dimension": "chat",
                "messages": [{"role": "user", "content": "Hi"}],
                "scoring": open_rule,
            },
        ],
    )
    return folder


def write_lines(path: Path, documents: list[dict[str, Any]]) -> None:
    """Write JSON lines."""
    path.write_text("".join(json.dumps(document) + "\n" for document in documents))
