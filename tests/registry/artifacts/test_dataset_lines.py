import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.engine.examples import parse_examples
from registry.artifacts.dataset_lines import MAX_FAULTS, DatasetSummary, check_dataset_lines, scoring_fault
from registry.choices import DatasetRole

USER = {"role": "user", "content": "Hello?"}
ANSWER = {"role": "assistant", "content": "Yes."}


def line(**changes: Any) -> bytes:
    document = {"id": "a", "messages": [USER, ANSWER]} | changes
    return json.dumps({key: value for key, value in document.items() if value is not ...}).encode()


def regression(**changes: Any) -> bytes:
    scoring = {"type": "exact", "answer": "yes"}
    return line(**{"messages": [USER], "dimension": "chat", "scoring": scoring} | changes)


def check(*lines: bytes, role: str = "train") -> DatasetSummary:
    return check_dataset_lines(lines, role=role)


def faults_of(*lines: bytes, role: str = "train") -> list[tuple[str, str | None]]:
    return [(fault.code, fault.where) for fault in check(*lines, role=role).faults]


def test_sound_lines() -> None:
    summary = check(line(), b"  \n", line(id="b", source="kept", tags={"lang": "en"}, category="x"))
    assert summary.is_valid
    assert (summary.num_examples, summary.num_verified, summary.num_faults) == (2, 0, 0)
    assert summary.tags == {"category": {"x": 1}, "lang": {"en": 1}}


@pytest.mark.parametrize(
    ("keys", "is_verified"),
    [
        ({}, 0),
        ({"reference_source": "person"}, 1),
        ({"reference_source": "rule"}, 1),
        ({"reference_source": "model"}, 0),
        ({"reference_source": "model", "confirmed_by": "Ann"}, 1),
        ({"confirmed_by": ""}, 0),
    ],
)
def test_verified(keys: dict[str, Any], is_verified: int) -> None:
    assert check(line(**keys)).num_verified == is_verified


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (b"{", "not-json"),
        (b"[]", "not-an-object"),
        (b'{"id": NaN}', "not-json"),
        (b'{"id": "a", "id": "b"}', "not-json"),
        (b"[" * 100_000, "not-json"),
        (b"\xff", "not-utf-8"),
        (b"\xef\xbb\xbf" + line(), "byte-order-mark"),
        (line(note="\x00"), "unstorable-text"),
        (b'{"id": "\\ud800"}', "unstorable-text"),
        (line(note="x" * 2**20), "line-too-long"),
        (line(id=...), "missing-id"),
        (line(id=" "), "missing-id"),
        (line(id=7), "missing-id"),
        (line(id="x" * 129), "id-too-long"),
        (line(messages=...), "missing-messages"),
        (line(messages=[]), "messages-invalid"),
        (line(messages="x"), "messages-invalid"),
        (line(messages=[1]), "messages-invalid"),
        (line(messages=[{"role": "tool", "content": ""}]), "messages-invalid"),
        (line(messages=[{"role": "user", "content": 1}]), "messages-invalid"),
        (line(messages=[USER, {"role": "system", "content": ""}]), "messages-invalid"),
        (line(messages=[ANSWER]), "messages-invalid"),
        (line(messages=[USER, ANSWER, ANSWER]), "messages-invalid"),
        (line(messages=[USER]), "missing-reference"),
        (line(messages=[USER, {"role": "assistant", "content": " "}]), "missing-reference"),
        (line(tags=["x"]), "tags-invalid"),
        (line(tags={"x": 1}), "tags-invalid"),
        (line(category=1), "category-invalid"),
        (line(confirmed_by=1), "confirmed-by-invalid"),
        (line(reference_source="guess"), "reference-source-invalid"),
    ],
)
def test_faults_of_a_line(raw: bytes, code: str) -> None:
    assert faults_of(line(id="first"), raw) == [(code, "data.jsonl line 2")]


def test_a_line_tells_all_its_faults() -> None:
    assert {code for code, _ in faults_of(line(id="", tags=1, category=1))} == {
        "missing-id",
        "tags-invalid",
        "category-invalid",
    }


def test_duplicate_ids_name_the_first_line() -> None:
    summary = check(line(), line(id="b"), line())
    assert [fault.where for fault in summary.faults] == ["data.jsonl line 3"]
    assert "line 1" in summary.faults[0].message


def test_roles_without_an_answer() -> None:
    asked = line(messages=[USER])
    assert check(asked, role="canary").is_valid
    assert check(line(), role="canary").is_valid
    assert faults_of(line(dimension="chat", scoring={"type": "exact", "answer": "x"}), role="regression") == [
        ("messages-invalid", "data.jsonl line 1")
    ]


def test_regression_lines() -> None:
    summary = check(regression(), role="regression")
    assert summary.is_valid and summary.tags == {"dimension": {"chat": 1}}
    assert faults_of(regression(dimension=..., scoring=..., reference=1), role="regression") == [
        (code, "data.jsonl line 1") for code in ("missing-dimension", "reference-invalid", "scoring-invalid")
    ]


@pytest.mark.parametrize(
    "scoring",
    [
        {"type": "exact", "answer": "x", "case_sensitive": True},
        {"type": "contains", "values": ["a"], "mode": "all"},
        {"type": "contains", "values": ["a"]},
        {"type": "regex", "pattern": "(?s)\\A.+", "note": "kept"},
        {"type": "choice", "answer": "B", "choices": ["x", "y"], "question": "Which?"},
        {"type": "choice", "answer": "2", "choices": ["x", "y"], "labels": ["1", "2"]},
    ],
)
def test_sound_scoring(scoring: dict[str, Any]) -> None:
    assert scoring_fault(scoring) == ""


@pytest.mark.parametrize(
    ("scoring", "part"),
    [
        (None, "must be an object"),
        ({"type": "magic"}, "scoring.type"),
        ({"type": ["exact"]}, "scoring.type"),
        ({"type": "exact"}, "scoring.answer"),
        ({"type": "exact", "answer": "x", "case_sensitive": "yes"}, "case_sensitive"),
        ({"type": "contains", "values": []}, "scoring.values"),
        ({"type": "contains", "values": ["a"], "mode": "some"}, "scoring.mode"),
        ({"type": "regex", "pattern": "("}, "no regular expression"),
        ({"type": "regex", "pattern": ""}, "scoring.pattern"),
        ({"type": "choice", "choices": ["x"], "answer": "A"}, "at least two"),
        ({"type": "choice", "choices": ["x", "y"], "answer": "C"}, "none of the labels"),
        ({"type": "choice", "choices": ["x", "y"], "answer": "A", "labels": ["A", "A"]}, "scoring.labels"),
        ({"type": "choice", "choices": ["x", "y"], "answer": ["A"]}, "none of the labels"),
        ({"type": "choice", "choices": ["x", "y"], "answer": "A", "question": ""}, "scoring.question"),
    ],
)
def test_faulty_scoring(scoring: Any, part: str) -> None:
    assert part in scoring_fault(scoring)


def test_faults_beyond_the_cap_are_counted() -> None:
    summary = check(*[b"{"] * 70)
    assert (len(summary.faults), summary.num_faults) == (MAX_FAULTS, 70)


@pytest.mark.parametrize("lines", [[], [b"\n", b" "]])
def test_empty_file(lines: list[bytes]) -> None:
    assert faults_of(*lines) == [("no-examples", "data.jsonl")]


def test_many_tag_values_are_put_together() -> None:
    summary = check(*[line(id=str(i), tags={"user": str(i)}) for i in range(60)])
    assert len(summary.tags["user"]) == 51 and summary.tags["user"]["…"] == 10


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["id", "messages", "role", "content", "tags", "scoring", "type", "choices", "answer"]
            ),
            inner,
        )
    ),
    max_leaves=12,
)


@given(_json, st.sampled_from(DatasetRole.values))
def test_any_json_is_judged_not_crashed_on(value: Any, role: str) -> None:
    summary = check(json.dumps(value).encode(), role=role)
    assert summary.num_examples + min(summary.num_faults, 1) == 1


def test_agrees_with_the_engine() -> None:
    """The engine, which this package may not import, judges the same lines alike."""
    lines = [
        line(), line(id="b", messages=[USER]), line(id="c", tags=1), line(id=""), b"{", line(),
        line(id="d", reference_source="person"), line(id="e", confirmed_by="Ann"),
    ]  # fmt: skip
    ours, theirs = check(*lines), parse_examples(lines, "train")
    assert ours.num_faults == theirs.num_faults
    assert (ours.num_examples, ours.num_verified) == (len(theirs.examples), theirs.num_verified)
    assert [fault.where for fault in ours.faults] == [fault.where for fault in theirs.faults]
