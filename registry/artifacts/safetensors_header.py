"""Reads and checks the header of a safetensors file, and nothing else of it.

The file is 8 bytes N (little-endian length of the header), N bytes of JSON, then the tensors' bytes without
holes (the safetensors format description). A header is written by a stranger: every count,
offset and name is checked before it is used, and memory is bounded by `MAX_HEADER_BYTES`. Values are never
read, so NaN or infinity inside a tensor cannot be seen here. Standard library only, no torch.
"""

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

from registry.artifacts.errors import SafetensorsError
from registry.artifacts.findings import shown

MAX_HEADER_BYTES = 100_000_000  # the limit of the reference implementation
MAX_DIMENSIONS = 16
_LENGTH_BYTES = 8

# Bits per element (safetensors 0.6 and later: sub-byte types are packed).
DTYPE_BITS: Mapping[str, int] = MappingProxyType(
    {
        "F4": 4,
        "F6_E2M3": 6,
        "F6_E3M2": 6,
        **dict.fromkeys(("BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "F8_E8M0"), 8),
        **dict.fromkeys(("F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
        **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
        **dict.fromkeys(("I32", "U32", "F32"), 32),
        **dict.fromkeys(("I64", "U64", "F64", "C64"), 64),
    }
)


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """What the header says of one tensor.

    Attributes:
        name: key in the file.
        dtype: safetensors name, for example "BF16".
        shape: sizes; () is a scalar.
        begin: first byte, counted from the end of the header (add `SafetensorsHeader.data_start` for the file
            offset).
        end: one past the last byte, counted alike.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int

    @property
    def num_elements(self) -> int:
        """Number of elements; 1 for a scalar."""
        return prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Length of the tensor in the file."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True)
class SafetensorsHeader:
    """A checked header.

    Attributes:
        tensors: by name, in the order of their bytes in the file.
        metadata: the "__metadata__" strings; empty when there are none.
        data_start: offset in the file of the first tensor byte.
        file_bytes: length of the file.
    """

    tensors: Mapping[str, TensorInfo]
    metadata: Mapping[str, str]
    data_start: int
    file_bytes: int


def read_header(path: Path, *, max_header_bytes: int = MAX_HEADER_BYTES) -> SafetensorsHeader:
    """Read and check the header of a safetensors file.

    Raises:
        SafetensorsError: with one of the codes safetensors-truncated, safetensors-header-too-large,
            safetensors-header-invalid, safetensors-duplicate-name, safetensors-dtype-unknown,
            safetensors-offsets-invalid (overlap, hole, size that does not fit the shape),
            safetensors-trailing-bytes.
        OSError: the file cannot be read.
    """
    with path.open("rb") as file:
        file_bytes = path.stat().st_size
        prefix = file.read(_LENGTH_BYTES)
        if len(prefix) < _LENGTH_BYTES:
            _fail("safetensors-truncated", f"The file has only {len(prefix)} bytes; it was cut off.")
        (header_bytes,) = struct.unpack("<Q", prefix)
        if header_bytes > max_header_bytes:
            _fail(
                "safetensors-header-too-large",
                f"The header claims {header_bytes} bytes; at most {max_header_bytes} are read. "
                "The file is damaged or not a safetensors file.",
            )
        if _LENGTH_BYTES + header_bytes > file_bytes:
            _fail(
                "safetensors-truncated",
                f"The header claims {header_bytes} bytes, the file has {file_bytes}; cut off.",
            )
        raw = file.read(header_bytes)
    if len(raw) < header_bytes:
        _fail("safetensors-truncated", "The file became shorter while it was read.")
    data_start = _LENGTH_BYTES + header_bytes
    tensors, metadata = _parse(raw)
    _check_layout(tensors, data_bytes=file_bytes - data_start)
    return SafetensorsHeader(MappingProxyType(tensors), MappingProxyType(metadata), data_start, file_bytes)


def _fail(code: str, message: str) -> NoReturn:
    raise SafetensorsError(message, code=code)


def _refuse_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in pairs:
        if name in result:
            _fail("safetensors-duplicate-name", f"The header names {shown(name)!r} twice.")
        result[name] = value
    return result


def _refuse_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is not JSON")


def _parse(raw: bytes) -> tuple[dict[str, TensorInfo], dict[str, str]]:
    if not raw.startswith(b"{"):
        _fail(
            "safetensors-header-invalid",
            "The header does not start with '{'; this is not a safetensors file.",
        )
    try:
        header = json.loads(
            raw.decode("utf-8"), object_pairs_hook=_refuse_duplicates, parse_constant=_refuse_constant
        )
    except (ValueError, RecursionError) as error:
        raise SafetensorsError(
            f"The header is not JSON: {shown(error)}.", code="safetensors-header-invalid"
        ) from error
    metadata = _parse_metadata(header.pop("__metadata__", None))
    tensors = [_parse_tensor(name, entry) for name, entry in header.items()]
    tensors.sort(key=lambda tensor: (tensor.begin, tensor.end))
    return {tensor.name: tensor for tensor in tensors}, metadata


def _parse_metadata(value: Any) -> dict[str, str]:
    if value is None:
        return {}
    if not isinstance(value, dict) or not all(isinstance(item, str) for item in value.values()):
        _fail("safetensors-header-invalid", "__metadata__ must map names to strings.")
    return dict(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63


def _parse_tensor(name: str, entry: Any) -> TensorInfo:
    where = f"tensor {shown(name)!r}"
    if not name or not name.isprintable():
        _fail("safetensors-header-invalid", f"The name of {where} is empty or holds control characters.")
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        _fail("safetensors-header-invalid", f"{where} must have exactly dtype, shape and data_offsets.")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPE_BITS:
        _fail("safetensors-dtype-unknown", f"{where} has the unknown dtype {shown(dtype)!r}.")
    if not isinstance(shape, list) or len(shape) > MAX_DIMENSIONS or not all(map(_is_count, shape)):
        _fail(
            "safetensors-header-invalid",
            f"{where}: shape must be a list of at most {MAX_DIMENSIONS} counts.",
        )
    if not isinstance(offsets, list) or len(offsets) != 2 or not all(map(_is_count, offsets)):
        _fail("safetensors-offsets-invalid", f"{where}: data_offsets must be two counts.")
    return TensorInfo(name, dtype, tuple(shape), offsets[0], offsets[1])


def _check_layout(tensors: Mapping[str, TensorInfo], *, data_bytes: int) -> None:
    """Check that the tensors, sorted by offset, fill the data exactly: no overlap, hole or rest."""
    position = 0
    for tensor in tensors.values():
        where = f"tensor {shown(tensor.name)!r}"
        bits = tensor.num_elements * DTYPE_BITS[tensor.dtype]
        if tensor.end < tensor.begin or bits != 8 * tensor.size_bytes:
            _fail(
                "safetensors-offsets-invalid",
                f"{where} of shape {list(tensor.shape)} and dtype {tensor.dtype} does not take the "
                f"{tensor.size_bytes} bytes that its offsets say.",
            )
        if tensor.begin != position:
            kind = "overlaps the one before" if tensor.begin < position else "leaves a hole before it"
            _fail(
                "safetensors-offsets-invalid",
                f"{where} {kind}: it begins at {tensor.begin}, not at {position}.",
            )
        position = tensor.end
    if position > data_bytes:
        _fail(
            "safetensors-truncated",
            f"The tensors need {position} bytes, the file has {data_bytes}; it was cut off.",
        )
    if position < data_bytes:
        _fail("safetensors-trailing-bytes", f"{data_bytes - position} bytes follow the last tensor.")
