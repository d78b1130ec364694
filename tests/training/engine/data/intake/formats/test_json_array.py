import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.engine.data.intake.builders import codes, text_file, values
from training.engine.data.intake.formats import json_array
from training.engine.data.intake.formats.json_array import read_json_array
from training.engine.data.intake.rows import FileRefused, RawRow, UnreadableRow

ROWS = [{"a": 'x"]}\\', "b": [1, {"c": "[[{"}]}, {"a": "你好"}, {}]


def read(
    path: Path, content: str | bytes, name: str = "utf-8", **limits: int
) -> list[RawRow | UnreadableRow]:
    path = path / "a.json"
    path.write_bytes(content if isinstance(content, bytes) else content.encode(name))
    return list(read_json_array(text_file(path, name=name, **limits)))


def refusal(path: Path, content: str | bytes) -> str:
    with pytest.raises(FileRefused) as caught:
        read(path, content)
    return caught.value.fault.code


@pytest.mark.parametrize("name", ["utf-8", "utf-16-le", "gb18030"])
@pytest.mark.parametrize("indent", [None, 2])
def test_a_list_at_the_top_or_under_data(tmp_path: Path, name: str, indent: int | None) -> None:
    for whole in (ROWS, {"version": {"data": [1]}, "data": ROWS, "licence": "]"}):
        rows = read(tmp_path, json.dumps(whole, ensure_ascii=False, indent=indent), name)
        assert list(values(rows)) == ROWS
        assert [row.number for row in rows] == [1, 2, 3]


@pytest.mark.parametrize("content", ["[]", " [ ] ", '{"data": []}', '{"data": [], "x": 1}'])
def test_an_empty_list(tmp_path: Path, content: str) -> None:
    assert read(tmp_path, content) == []


@given(
    st.lists(
        st.dictionaries(st.text('"\\[]{},好', max_size=3), st.text('"\\[]{},好', max_size=9), max_size=3)
    )
)
@pytest.mark.parametrize("block", [1, 2, 3, 7])
def test_any_size_of_blocks_gives_the_same_rows(
    tmp_path_factory: pytest.TempPathFactory, block: int, rows: list[dict[str, str]]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_array, "_BLOCK_BYTES", block)
        read_rows = read(tmp_path_factory.mktemp("a"), json.dumps(rows, ensure_ascii=False))
    assert list(values(read_rows)) == rows


def test_bad_elements_are_passed_over(tmp_path: Path) -> None:
    elements = [
        '{"a": 1}',
        "{'a': 1}",
        "[1, 2]",
        "null",
        "12",
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": "\\u0000"}',
        "[" * 5000 + "]" * 5000,
        '{"a": "' + "x" * 2000 + '"}',
        '{"a": ["' + '\\"], {' * 700 + '"]}',
        '{"a": 2}',
    ]
    rows = read(tmp_path, "[" + ",\n".join(elements) + "]", max_line_bytes=1500 + 9000)
    assert codes(rows) == {
        2: "not-json",
        3: "not-an-object",
        4: "not-an-object",
        5: "not-an-object",
        6: "duplicate-key",
        7: "number-not-finite",
        8: "nul-character",
        9: "too-deep",
    }
    rows = read(tmp_path, "[" + ",\n".join(elements) + "]", max_line_bytes=1024)
    assert codes(rows) | {9: "row-too-long", 10: "row-too-long", 11: "row-too-long"} == codes(rows)
    assert [row.number for row in rows] == list(range(1, 13))


def test_an_element_of_many_blocks_is_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_array, "_BLOCK_BYTES", 4096)
    rows = read(tmp_path, '[{"a": "' + "x" * 3_000_000 + '"}, {"a": 1}]', max_line_bytes=10_000)
    assert codes(rows) == {1: "row-too-long"}
    assert "3000009 bytes" in next(row.fault.message for row in rows if isinstance(row, UnreadableRow))
    assert list(values(rows)) == [{"a": 1}]


def test_limit_counts_bytes(tmp_path: Path) -> None:
    # 8 ASCII characters and 400 of three bytes.
    content = '[{"a": "' + "好" * 400 + '"}]'
    assert codes(read(tmp_path, content, max_line_bytes=1208)) == {1: "row-too-long"}
    assert codes(read(tmp_path, content, max_line_bytes=1209)) == {}


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("", "json-not-a-list"),
        ('"text"', "json-not-a-list"),
        ('{"rows": [{"a": 1}]}', "json-not-a-list"),
        ('{"data": {"a": 1}}', "json-not-a-list"),
        ('{"a" 1}', "json-not-a-list"),
        ("{1: 2}", "json-not-a-list"),
        ('[{"a": 1}] x', "json-not-a-list"),
        ('{"data": [{"a": 1}]', "json-not-a-list"),
        ('[{"a": 1}', "json-broken"),
        ('[{"a": 1}, {"a"', "json-broken"),
        ('[{"a": 1},]', "json-broken"),
        ('[{"a": 1} {"a": 2}]', "json-broken"),
        ("{" + ", ".join(f'"k{number}": 1' for number in range(200)) + "}", "json-not-a-list"),
    ],
)
def test_refused_files(tmp_path: Path, content: str, code: str) -> None:
    assert refusal(tmp_path, content) == code


def test_refusal_names_keys_and_rows(tmp_path: Path) -> None:
    with pytest.raises(FileRefused, match="keys seen: rows, version"):
        read(tmp_path, '{"rows": [], "version": 2}')
    with pytest.raises(FileRefused, match="after row 2 the list breaks off"):
        read(tmp_path, '[{"a": 1}, {"a": 2}')


def test_bytes_of_another_encoding_are_bad_rows(tmp_path: Path) -> None:
    whole: list[Any] = [{"a": "您好订单"}, {"a": "X"}, {"a": "好"}]
    content = json.dumps(whole, ensure_ascii=False).encode().replace(b"X", "您好订单".encode("gb18030"))
    rows = read(tmp_path, content)
    assert codes(rows) == {2: "mixed-encoding"}
    assert list(values(rows)) == [whole[0], whole[2]]
    content = json.dumps(whole, ensure_ascii=False).encode("gb18030").replace(b"X", "你好".encode())
    path = tmp_path / "b.json"
    path.write_bytes(content)
    assert codes(read_json_array(text_file(path, name="gb18030"))) == {2: "mixed-encoding"}
