import subprocess
import sys
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest

from training.engine.data.intake.formats.tables import (
    describe_schema,
    find_class_names,
    find_longest_text,
    make_plain,
    measure_bytes,
)
from training.engine.data.intake.rows import FileRefused, RowFault


def test_intake_loads_no_pyarrow() -> None:
    code = "import training.engine.data.intake.understanding, sys; assert 'pyarrow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_columns_that_are_not_read_are_named() -> None:
    union = pa.dense_union([pa.field("x", pa.int64())])
    schema = pa.schema(
        [
            ("text", pa.string()),
            ("union", union),
            ("view", pa.list_view(pa.string())),
            ("inside", pa.list_(pa.struct([("x", union)]))),
            ("deep", pa.list_(pa.struct([("x", pa.dictionary(pa.int32(), pa.string()))]))),
        ]
    )
    layout = describe_schema(schema)
    assert layout.columns == ("text", "deep")
    assert set(layout.unread) == {"union", "view", "inside"}


def test_two_columns_of_one_name_are_refused() -> None:
    with pytest.raises(FileRefused) as caught:
        describe_schema(pa.schema([("a", pa.string()), ("a", pa.string())]))
    assert caught.value.fault.code == "columns-twice"


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        # 8 for each value, and the bytes of texts; "好" has 3.
        (pa.array([1, 2]), 16),
        (pa.array(["ab", "好", None]), 24 + 5),
        (pa.array(["ab", "ab", "c"]).dictionary_encode(), 24 + 5),
        (pa.array([["ab"], [], ["c", "d"]]), 24 + 24 + 4),
        (pa.array([["ab"], [], ["c", "d"]]).slice(2, 1), 8 + 16 + 2),
        (pa.array([{"x": "ab"}, {"x": "c"}]), 16 + 3),
        (pa.array([{"x": "ab"}, {"x": "c"}]).slice(1, 1), 8 + 1),
        (
            pa.array([[("k", "vv")], [("k", "w")]], pa.map_(pa.string(), pa.string())).slice(1, 1),
            8 + 8 + 1 + 8 + 1,
        ),
        (pa.array(["abc"], pa.string_view()), 8 + 3),
        (pa.array([b"abc"], pa.binary(3)), 8 + 3),
    ],
)
def test_measured_bytes(array: Any, expected: int) -> None:
    assert measure_bytes(array) == expected


def test_longest_texts_of_dictionaries() -> None:
    texts = pa.array(["ab", "好", "ab"]).dictionary_encode()
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 3], pa.int32()), texts)
    assert find_longest_text(texts) == find_longest_text(lists) == 3
    assert find_longest_text(pa.StructArray.from_arrays([texts, texts], names=["a", "b"])) == 6
    assert find_longest_text(pa.array([1, 1]).dictionary_encode()) == 0
    assert find_longest_text(pa.array(["not in a dictionary"])) == 0


def test_plain_values() -> None:
    assert make_plain([(timedelta(seconds=90), 1.5)]) == [["0:01:30", 1.5]]
    for value, code in (
        (float("-inf"), "number-not-finite"),
        (b"\xff", "not-json-safe"),
        (object(), "not-json-safe"),
    ):
        with pytest.raises(RowFault) as caught:
            make_plain(value)
        assert caught.value.code == code


@pytest.mark.parametrize("features", [None, [], {"a": 3}, {"a": {"_type": "ClassLabel", "names": [1]}}])
def test_odd_features_are_ignored(features: Any) -> None:
    assert find_class_names(features, ["a"]) == {}
