import json
from typing import Any

import pytest

from evaluation.engine.examples import (
    MAX_FAULTS,
    Example,
    Message,
    ParsedExamples,
    RegressionExample,
    Role,
    parse_examples,
)
from evaluation.engine.scoring.regression import ExactRule

USER = {"role": "user", "content": "Printer broken"}
ANSWER = {"role": "assistant", "content": '{"type": "bug"}'}
SYSTEM = {"role": "system", "content": "x"}
BLANK = {"role": "assistant", "content": " "}
REGEX = {"type": "regex", "pattern": "x"}


def parse(*documents: Any, role: Role = "holdout") -> ParsedExamples:
    return parse_examples([json.dumps(document).encode() + b"\n" for document in documents], role)


def fault_codes(parsed: ParsedExamples) -> list[str]:
    return [fault.code for fault in parsed.faults]


def test_a_task_line_becomes_an_example() -> None:
    line = {
        "id": "t1",
        "messages": [{"role": "system", "content": "S"}, USER, ANSWER],
        "tags": {"channel": "mail"},
        "category": "hardware",
        "reference_source": "person",
        "source": "hand",
    }
    parsed = parse(line)
    assert parsed.faults == ()
    assert parsed.examples == (
        Example(
            id="t1",
            messages=(Message("system", "S"), Message("user", "Printer broken")),
            reference='{"type": "bug"}',
            tags={"channel": "mail"},
            category="hardware",
            reference_source="person",
            extra={"source": "hand"},
        ),
    )
    assert parsed.is_verified


def test_a_regression_line_becomes_a_regression_example() -> None:
    line = {"id": "r", "dimension": "chat", "messages": [USER], "scoring": {"type": "exact", "answer": "4"}}
    (example,) = parse(line, role="regression").examples
    assert isinstance(example, RegressionExample)
    assert (example.dimension, example.scoring, example.reference) == ("chat", ExactRule("4"), None)


def test_a_canary_may_lack_its_answer_and_be_empty() -> None:
    parsed = parse({"id": "c", "messages": [{"role": "user", "content": ""}]}, role="canary")
    assert parsed.faults == ()
    assert parsed.examples[0].reference is None


@pytest.mark.parametrize(
    ("extra", "verified"),
    [
        ({}, False),
        ({"reference_source": "model"}, False),
        ({"reference_source": "model", "confirmed_by": "Ana"}, True),
        ({"confirmed_by": ""}, False),
        ({"reference_source": "rule"}, True),
    ],
)
def test_verified_is_by_person_or_rule_or_confirmed(extra: dict[str, str], verified: bool) -> None:
    parsed = parse({"id": "a", "messages": [USER, ANSWER], **extra})
    assert parsed.num_verified == int(verified)
    assert parsed.is_verified is verified


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", "not-json"),
        (b'{"id": "a", "id": "b"}', "not-json"),
        (b"[1]", "not-an-object"),
        (b"\xff\xfe", "not-utf-8"),
        (b"\xef\xbb\xbf{}", "byte-order-mark"),
        (b'{"id": "a\\u0000"}', "unstorable-text"),
        (b'{"id": "\\ud800"}', "unstorable-text"),
        (b" " * (2**20) + b"{}", "line-too-long"),
    ],
)
def test_unreadable_lines_are_named_by_number(line: bytes, code: str) -> None:
    parsed = parse_examples([b"\n", line], "holdout")
    assert fault_codes(parsed) == [code]
    assert parsed.faults[0].where == "data.jsonl line 2"


@pytest.mark.parametrize(
    ("document", "role", "code"),
    [
        ({"messages": [USER, ANSWER]}, "holdout", "missing-id"),
        ({"id": 3, "messages": [USER, ANSWER]}, "holdout", "missing-id"),
        ({"id": "x" * 201, "messages": [USER, ANSWER]}, "holdout", "id-too-long"),
        ({"id": "a"}, "holdout", "missing-messages"),
        ({"id": "a", "messages": []}, "holdout", "messages-invalid"),
        ({"id": "a", "messages": ["x"]}, "holdout", "messages-invalid"),
        ({"id": "a", "messages": [{"role": "tool", "content": "x"}]}, "holdout", "messages-invalid"),
        ({"id": "a", "messages": [{"role": "user", "content": None}]}, "holdout", "messages-invalid"),
        ({"id": "a", "messages": [USER, SYSTEM]}, "holdout", "messages-invalid"),
        ({"id": "a", "messages": [ANSWER]}, "holdout", "messages-invalid"),
        ({"id": "a", "messages": [USER]}, "holdout", "missing-reference"),
        ({"id": "a", "messages": [USER, BLANK]}, "train", "missing-reference"),
        ({"id": "a", "messages": [USER, ANSWER], "tags": ["x"]}, "holdout", "tags-invalid"),
        ({"id": "a", "messages": [USER, ANSWER], "category": 1}, "holdout", "category-invalid"),
        (
            {"id": "a", "messages": [USER, ANSWER], "reference_source": "gpt"},
            "ood",
            "reference-source-invalid",
        ),
        (
            {"id": "a", "messages": [USER, ANSWER], "dimension": "d", "scoring": REGEX},
            "regression",
            "messages-invalid",
        ),
        ({"id": "a", "messages": [USER], "scoring": REGEX}, "regression", "missing-dimension"),
        ({"id": "a", "messages": [USER], "dimension": "d"}, "regression", "scoring-invalid"),
    ],
)
def test_faulty_examples(document: dict[str, Any], role: Role, code: str) -> None:
    parsed = parse(document, role=role)
    assert fault_codes(parsed) == [code]
    assert parsed.examples == ()


def test_all_faults_are_collected_and_capped() -> None:
    parsed = parse(*({"id": f"x{i}"} for i in range(MAX_FAULTS + 20)))
    assert len(parsed.faults) == MAX_FAULTS
    assert parsed.num_faults == MAX_FAULTS + 20


def test_several_faults_of_one_line_come_together() -> None:
    assert fault_codes(parse({"category": 1})) == ["missing-id", "missing-messages", "category-invalid"]


def test_a_duplicate_id_names_the_first_line() -> None:
    line = {"id": "a", "messages": [USER, ANSWER]}
    parsed = parse(line, line)
    assert fault_codes(parsed) == ["duplicate-id"]
    assert "line 1" in parsed.faults[0].message
    assert parsed.faults[0].where == "data.jsonl line 2"


def test_an_empty_file_is_a_fault() -> None:
    assert fault_codes(parse_examples([b"\n"], "holdout")) == ["no-examples"]
