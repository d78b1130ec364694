import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from registry.artifacts.errors import SafetensorsError
from registry.artifacts.safetensors_header import read_header
from tests.registry.artifacts.builders import write_raw, write_tensors


def entry(begin: int, end: int, *, dtype: str = "F32", shape: Any = (2,)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end]}


def code_of(path: Path) -> str:
    with pytest.raises(SafetensorsError) as caught:
        read_header(path)
    return caught.value.code


def test_reads_what_the_reference_library_writes(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    arrays = {
        "x": np.zeros((2, 3), np.float32),
        "y": np.zeros((), np.float16),
        "empty": np.zeros((0, 4), np.int8),
    }
    save_file(arrays, path, metadata={"format": "np"})
    header = read_header(path)
    assert {name: (info.dtype, info.shape) for name, info in header.tensors.items()} == {
        "x": ("F32", (2, 3)),
        "y": ("F16", ()),
        "empty": ("I8", (0, 4)),
    }
    assert dict(header.metadata) == {"format": "np"}
    assert header.data_start + sum(info.size_bytes for info in header.tensors.values()) == path.stat().st_size


def test_sub_byte_types(tmp_path: Path) -> None:
    header = read_header(write_tensors(tmp_path / "a", {"x": ("F4", (2, 3))}))
    assert header.tensors["x"].size_bytes == 3  # 6 elements of 4 bits


@pytest.mark.parametrize("content", [b"", b"\x00" * 7, struct.pack("<Q", 100) + b"{}"])
def test_cut_off_files(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    assert code_of(path) == "safetensors-truncated"


def test_a_header_of_a_gigabyte_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 1_000_000_000) + b"{")
        file.truncate(1_000_000_100)  # sparse: the bytes are really there, and cost no disk
    assert code_of(path) == "safetensors-header-too-large"


def test_a_length_of_all_ones(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xff" * 8 + b"{}")
    assert code_of(path) == "safetensors-header-too-large"


@pytest.mark.parametrize(
    ("header", "num_data_bytes", "code"),
    [
        ({"a": entry(0, 8)}, 7, "safetensors-truncated"),
        ({"a": entry(0, 8)}, 9, "safetensors-trailing-bytes"),
        ({"a": entry(0, 8), "b": entry(4, 12)}, 12, "safetensors-offsets-invalid"),  # overlap
        ({"a": entry(0, 8), "b": entry(0, 8)}, 8, "safetensors-offsets-invalid"),  # the same bytes twice
        ({"a": entry(0, 8), "b": entry(12, 20)}, 20, "safetensors-offsets-invalid"),  # hole
        ({"a": entry(4, 12)}, 12, "safetensors-offsets-invalid"),  # hole at the start
        ({"a": entry(8, 0)}, 8, "safetensors-offsets-invalid"),  # backwards
        ({"a": entry(0, 8, shape=(3,))}, 8, "safetensors-offsets-invalid"),  # 3 x 4 bytes are not 8
        ({"a": entry(0, 8, shape=(1 << 62, 1 << 62))}, 8, "safetensors-offsets-invalid"),
        ({"a": {**entry(0, 8), "data_offsets": [0, -8]}}, 8, "safetensors-offsets-invalid"),
        ({"a": {**entry(0, 8), "data_offsets": [0]}}, 8, "safetensors-offsets-invalid"),
        ({"a": {**entry(0, 8), "data_offsets": [0, 8.0]}}, 8, "safetensors-offsets-invalid"),
        ({"a": {**entry(0, 8), "data_offsets": [False, 8]}}, 8, "safetensors-offsets-invalid"),
        ({"a": entry(0, 8, dtype="Q4")}, 8, "safetensors-dtype-unknown"),
        ({"a": {**entry(0, 8), "dtype": ["F32"]}}, 8, "safetensors-dtype-unknown"),
        ({"a": entry(0, 8, shape=(-2,))}, 8, "safetensors-header-invalid"),
        ({"a": {**entry(0, 8), "shape": 2}}, 8, "safetensors-header-invalid"),
        ({"a": entry(0, 8, shape=(1,) * 20)}, 8, "safetensors-header-invalid"),
        ({"a": {**entry(0, 8), "extra": 1}}, 8, "safetensors-header-invalid"),
        ({"a": [0, 8]}, 8, "safetensors-header-invalid"),
        ({"": entry(0, 8)}, 8, "safetensors-header-invalid"),
        ({"a\x1b[31m": entry(0, 8)}, 8, "safetensors-header-invalid"),
        ({"a\ud800": entry(0, 8)}, 8, "safetensors-header-invalid"),
        ({"__metadata__": {"format": 1}}, 0, "safetensors-header-invalid"),
        ({"__metadata__": "pt"}, 0, "safetensors-header-invalid"),
        ("[]", 0, "safetensors-header-invalid"),
        (" {}", 0, "safetensors-header-invalid"),
        ("{", 0, "safetensors-header-invalid"),
        ('{"a":NaN}', 0, "safetensors-header-invalid"),
        ('{"a":' + "[" * 100_000 + "]" * 100_000 + "}", 0, "safetensors-header-invalid"),
        ('{"a":' + "9" * 5_000 + "}", 0, "safetensors-header-invalid"),
        ('{"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"a":{}}', 0, "safetensors-duplicate-name"),
        ("PK\x03\x04 a zip, as torch.save writes it", 0, "safetensors-header-invalid"),
    ],
)
def test_each_damage_has_its_code(tmp_path: Path, header: Any, num_data_bytes: int, code: str) -> None:
    assert code_of(write_raw(tmp_path / "a", header, bytes(num_data_bytes))) == code


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(struct.pack("<Q", 4) + b'{"\xff}')
    assert code_of(path) == "safetensors-header-invalid"


def test_padding_after_the_header_is_allowed(tmp_path: Path) -> None:
    path = write_raw(tmp_path / "a", json.dumps({"a": entry(0, 8)}) + "     ", bytes(8))
    assert read_header(path).tensors["a"].shape == (2,)


@settings(max_examples=200, deadline=None)
@given(
    content=st.binary(max_size=200),
    start=st.sampled_from([b"", b'{"a":{', b'{"a":{"dtype":"F32","shape":[2],']),
)
def test_random_bytes_never_raise_anything_else(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, start: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.safetensors"
    body = start + content
    path.write_bytes(struct.pack("<Q", len(body)) + body)
    try:
        read_header(path)
    except SafetensorsError as error:
        assert error.code.startswith("safetensors-")
