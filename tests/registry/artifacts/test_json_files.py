from pathlib import Path

import pytest

from registry.artifacts.findings import Finding
from registry.artifacts.json_files import JsonFileError, load_json_object, read_json_object


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{",
        b'{"a":NaN}',
        b'{"a":1,"a":2}',
        b'{"a":' + b"[" * 100_000,
        b"\xff{}",
        b'{"a":-Infinity}',
    ],
)
def test_anything_but_a_strict_object_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(content)
    with pytest.raises(JsonFileError):
        load_json_object(path)
    findings: list[Finding] = []
    assert read_json_object(path, findings, code="thing") == {}
    assert [finding.code for finding in findings] == ["thing-invalid"]


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_bytes(b'\xef\xbb\xbf{"a":\r\n1}')
    assert load_json_object(path) == {"a": 1}


def test_a_missing_file_is_a_finding_only_when_required(tmp_path: Path) -> None:
    findings: list[Finding] = []
    read_json_object(tmp_path / "a.json", findings, code="thing")
    assert findings == []
    read_json_object(tmp_path / "a.json", findings, code="thing", is_required=True)
    assert [finding.code for finding in findings] == ["thing-missing"]
