from typing import Any

import pytest

from training.engine.data.intake.known_fields import read_id, read_known
from training.engine.data.intake.rows import RowFault


@pytest.mark.parametrize(
    ("raw", "expected"), [("a", "a"), (7, "7"), (-7, "-7"), (None, None), ("  ", None), (" a", " a")]
)
def test_ids(raw: Any, expected: str | None) -> None:
    assert read_id(raw) == expected


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        (True, "id-invalid"),
        (1.0, "id-invalid"),
        (["a"], "id-invalid"),
        ("x" * 129, "id-too-long"),
        (10**128, "id-too-long"),
    ],
)
def test_ids_that_are_none(raw: Any, code: str) -> None:
    with pytest.raises(RowFault) as caught:
        read_id(raw)
    assert caught.value.code == code


@pytest.mark.parametrize(
    ("key", "raw", "expected"),
    [
        (
            "tags",
            {"city": "北京", "n": 3, "vip": True, "none": None},
            {"city": "北京", "n": "3", "vip": "true"},
        ),
        ("tags", '{"city": "x"}', {"city": "x"}),
        ("tags", {}, None),
        ("tags", "", None),
        ("category", 5, "5"),
        ("group", 1234, "1234"),
        ("reference_source", "person", "person"),
        ("scoring", {"type": "exact", "answer": None}, {"type": "exact", "answer": None}),
        ("origin", "ledger 7", {"given": "ledger 7"}),
        ("reference", ["x"], ["x"]),
        ("dimension", None, None),
    ],
)
def test_known_values(key: str, raw: Any, expected: Any) -> None:
    assert read_known(key, raw) == expected


def test_nulls_that_a_table_fills_in_are_dropped() -> None:
    raw = {"type": "exact", "answer": "a", "values": None}
    assert read_known("scoring", raw, drops_nulls=True) == {"type": "exact", "answer": "a"}


@pytest.mark.parametrize(
    ("key", "raw", "code"),
    [
        ("tags", "vip;new", "tags-invalid"),
        ("tags", {"a": ["b"]}, "tags-invalid"),
        ("tags", '{"a": "b", "a": "c"}', "tags-invalid"),
        ("category", "x" * 65, "category-invalid"),
        ("category", ["x"], "category-invalid"),
        ("confirmed_by", {}, "confirmed-by-invalid"),
        ("reference_source", "expert", "reference-source-invalid"),
        ("scoring", "exact", "scoring-invalid"),
    ],
)
def test_refused_values(key: str, raw: Any, code: str) -> None:
    with pytest.raises(RowFault) as caught:
        read_known(key, raw)
    assert caught.value.code == code
