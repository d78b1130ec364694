"""Writing one merged weight file: the base's file in which only the changed tensors' bytes differ.

Names, dtypes and metadata are those of the base. Its header is kept as it is unless a tensor changes its
size or is added; then a new one is written and the untouched bytes are copied behind it. At most one block
of rows and one pair of factors are in memory.
"""

import json
import shutil
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

import torch

from registry.artifacts.adapter_changes import TensorChange
from registry.artifacts.safetensors_header import DTYPE_BITS, SafetensorsHeader, TensorInfo, read_header
from training.engine.errors import MergeFailed, MergeRefused
from training.engine.merge.adapter_reader import BLOCK_BYTES, AdapterReader, TensorUpdate
from training.engine.merge.arithmetic import RowSpan, add_delta, round_rows, sum_squares

_TORCH_DTYPES = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}
_ALIGNMENT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedTensor:
    """What the merge did to one tensor.

    Attributes:
        name: In the merged model.
        max_abs_delta: Largest absolute change of an element, before rounding.
        changed_fraction: Elements that differ from the base after rounding, 0-1; 1 for a tensor that the base
            has not, or has in another size.
        is_adapted: Whether a low-rank pair was added.
        is_one_expert: Whether it is one of several tensors of that pair, so that it may stay as it was.
    """

    name: str
    max_abs_delta: float
    changed_fraction: float
    is_adapted: bool
    is_one_expert: bool


@dataclass(frozen=True, slots=True)
class BaseFiles:
    """The base model's weight files.

    Attributes:
        folder: Where they are.
        headers: By file name.
    """

    folder: Path
    headers: Mapping[str, SafetensorsHeader]

    @classmethod
    def read(cls, folder: Path, shards: Sequence[str]) -> "BaseFiles":
        """Read the headers."""
        return cls(folder, {shard: read_header(folder / shard) for shard in shards})

    def shard_of(self, tensor: str) -> str:
        """Return the file that holds a tensor."""
        return next(shard for shard, header in self.headers.items() if tensor in header.tensors)

    def dtype_of(self, tensor: str) -> str:
        """Return a tensor's dtype, in safetensors' words."""
        return self.headers[self.shard_of(tensor)].tensors[tensor].dtype


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a tensor is in a file: its header entry and the first byte of the file's tensors."""

    info: TensorInfo
    data_start: int
    file: BinaryIO

    def seek_row(self, row: int, row_bytes: int) -> None:
        self.file.seek(self.data_start + self.info.begin + row * row_bytes)


def plan_header(base: BaseFiles, shard: str, changes: Sequence[TensorChange]) -> SafetensorsHeader:
    """Return the header of the merged file: the base's own where no size changes.

    In a new header the wider dtypes come first, as safetensors itself orders them, so that every tensor is
    aligned.
    """
    header = base.headers[shard]
    kept = {name: (info.dtype, info.shape) for name, info in header.tensors.items()}
    wanted = {**kept, **{change.target: (base.dtype_of(change.source), change.shape) for change in changes}}
    if wanted == kept:
        return header
    tensors: dict[str, TensorInfo] = {}
    position = 0
    for name, (dtype, shape) in sorted(wanted.items(), key=lambda item: -DTYPE_BITS[item[1][0]]):
        end = position + prod(shape) * DTYPE_BITS[dtype] // 8
        tensors[name] = TensorInfo(name, dtype, shape, position, end)
        position = end
    data_start = len(_encode_header(tensors, header.metadata))
    return SafetensorsHeader(MappingProxyType(tensors), header.metadata, data_start, data_start + position)


def write_merged_shard(
    base: BaseFiles,
    shard: str,
    target: Path,
    changes: Sequence[TensorChange],
    reader: AdapterReader,
    *,
    on_tensor: Callable[[MergedTensor], None],
) -> SafetensorsHeader:
    """Write a weight file with the changes carried out; return its header.

    Args:
        base: The base model's weight files.
        shard: The one that is copied.
        target: File to write.
        changes: To the tensors of this file.
        reader: Of the adapter.
        on_tensor: Called after each changed tensor.

    Raises:
        MergeRefused: ``adapter-not-finite``, ``merge-not-finite`` or ``adapter-tensor-without-effect``.
    """
    kept = base.headers[shard]
    merged = plan_header(base, shard, changes)
    if merged is kept:
        shutil.copyfile(base.folder / shard, target)
    else:
        touched = {change.target for change in changes}
        _copy_untouched(base.folder / shard, target, kept, merged, touched)
    for change in changes:
        source = base.shard_of(change.source)
        header = base.headers[source]
        with (base.folder / source).open("rb") as base_file, target.open("r+b") as merged_file:
            read_from = _Place(header.tensors[change.source], header.data_start, base_file)
            write_to = _Place(merged.tensors[change.target], merged.data_start, merged_file)
            on_tensor(_TensorWriter(change, read_from, write_to, reader).write())
    return merged


class _TensorWriter:
    """Carries out one change, block by block."""

    def __init__(self, change: TensorChange, source: _Place, target: _Place, reader: AdapterReader) -> None:
        self._change = change
        self._source = source
        self._target = target
        self._reader = reader
        self._dtype = _TORCH_DTYPES[target.info.dtype]
        self._num_columns = target.info.shape[-1] if len(target.info.shape) > 1 else 1
        self._row_bytes = self._num_columns * DTYPE_BITS[target.info.dtype] // 8
        self._block_rows = max(1, BLOCK_BYTES // self._row_bytes)
        self._has_base_rows = source.info.shape == target.info.shape

    def write(self) -> MergedTensor:
        update = self._reader.read_update(self._change)
        sums = self._sum_columns(update)
        num_changed, max_abs_delta = 0, 0.0
        for span in update.spans:
            for begin in range(span.begin, span.end, self._block_rows):
                end = min(begin + self._block_rows, span.end)
                changed, delta = self._write_rows(update, span, sums, begin, end)
                num_changed += changed
                max_abs_delta = max(max_abs_delta, delta)
        self._require_effect(num_changed)
        return MergedTensor(
            name=self._change.target,
            max_abs_delta=max_abs_delta,
            changed_fraction=num_changed / self._target.info.num_elements,
            is_adapted=self._change.pair is not None,
            is_one_expert=self._change.expert is not None,
        )

    def _write_rows(
        self, update: TensorUpdate, span: RowSpan, sums: torch.Tensor | None, begin: int, end: int
    ) -> tuple[int, float]:
        start = self._read_start(begin, end)
        delta = span.delta_rows(begin, end)
        summed = add_delta(start, delta)
        if update.magnitudes is not None:
            squares = sum_squares(summed, is_by_column=False) if sums is None else sums
            summed = summed * update.magnitudes.scale(squares, begin, end)
        if update.added is not None:
            summed = summed + update.added[begin:end]
        if update.row_indices is not None and update.row_values is not None:
            first, last = torch.searchsorted(update.row_indices, torch.tensor([begin, end])).tolist()
            summed = summed.index_copy(
                0, update.row_indices[first:last] - begin, update.row_values[first:last]
            )
        block = round_rows(summed, start, delta if update.is_plain else None, self._dtype)
        if not block.is_finite:
            raise MergeRefused(
                "merge-not-finite",
                f"Merging into {self._change.target} gives values that {self._target.info.dtype} cannot hold "
                "(NaN "
                "or infinity). Train again with a lower learning rate, or look at lora_alpha.",
            )
        self._target.seek_row(begin, self._row_bytes)
        self._target.file.write(_to_bytes(block.rows))
        return self._count_changed(block.rows, start, begin, end), block.max_abs_delta

    def _count_changed(self, rows: torch.Tensor, start: torch.Tensor, begin: int, end: int) -> int:
        if not self._has_base_rows or self._source.info.name != self._target.info.name:
            return rows.numel()
        base_rows = start if self._change.whole is None else self._read_base(begin, end)
        return int((rows != base_rows).sum())

    def _read_start(self, begin: int, end: int) -> torch.Tensor:
        """Return rows of what the change starts from: [R, columns]."""
        if self._change.whole is not None:
            return self._reader.read_rows(self._change.whole, begin, end)
        return self._read_base(begin, end)

    def _read_base(self, begin: int, end: int) -> torch.Tensor:
        self._source.seek_row(begin, self._row_bytes)
        buffer = bytearray(self._source.file.read((end - begin) * self._row_bytes))
        return torch.frombuffer(buffer, dtype=self._dtype).view(end - begin, self._num_columns)

    def _sum_columns(self, update: TensorUpdate) -> torch.Tensor | None:
        """Return the columns' sums of squares for DoRA by column, which needs all rows before the first
        write.
        """
        if update.magnitudes is None or not update.magnitudes.is_by_column:
            return None
        sums = torch.zeros(self._num_columns, dtype=torch.float64)
        for span in update.spans:
            for begin in range(span.begin, span.end, self._block_rows):
                end = min(begin + self._block_rows, span.end)
                summed = add_delta(self._read_start(begin, end), span.delta_rows(begin, end))
                sums += sum_squares(summed, is_by_column=True)
        return sums

    def _require_effect(self, num_changed: int) -> None:
        if num_changed or self._change.pair is None or self._change.expert is not None:
            return
        raise MergeRefused(
            "adapter-tensor-without-effect",
            f"The adapter does not change {self._change.target} at all: its lora_B is zero, or the change is "
            "lost "
            f"in rounding to {self._target.info.dtype}. It was not trained, or saved before training.",
        )


def _copy_untouched(
    source: Path, target: Path, base: SafetensorsHeader, merged: SafetensorsHeader, touched: set[str]
) -> None:
    """Write the new header and every untouched tensor behind it; the touched ones are left as zeros."""
    with source.open("rb") as base_file, target.open("wb") as merged_file:
        merged_file.write(_encode_header(merged.tensors, merged.metadata))
        merged_file.truncate(merged.file_bytes)
        for name, info in merged.tensors.items():
            if name in touched:
                continue
            base_file.seek(base.data_start + base.tensors[name].begin)
            merged_file.seek(merged.data_start + info.begin)
            for offset in range(0, info.size_bytes, BLOCK_BYTES):
                merged_file.write(base_file.read(min(BLOCK_BYTES, info.size_bytes - offset)))


def _encode_header(tensors: Mapping[str, TensorInfo], metadata: Mapping[str, str]) -> bytes:
    """Return the length and the JSON text of a header, padded so that the tensors are aligned."""
    header: dict[str, object] = {"__metadata__": dict(metadata)} if metadata else {}
    for name, info in tensors.items():
        header[name] = {
            "dtype": info.dtype,
            "shape": list(info.shape),
            "data_offsets": [info.begin, info.end],
        }
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode("utf-8")
    text += b" " * (-len(text) % _ALIGNMENT)
    return struct.pack("<Q", len(text)) + text


def _to_bytes(tensor: torch.Tensor) -> bytes:
    """Return the elements' bytes; NumPy knows no bfloat16, so they pass as bytes."""
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


def verify_shard(
    source: Path, target: Path, expected: SafetensorsHeader, changes: Sequence[TensorChange]
) -> None:
    """Read a written file back: the planned header, every untouched tensor identical byte for byte, others
    not.

    A tensor of the base that was replaced as a whole may hold the base's own values, and so may one expert of
    several.

    Raises:
        MergeFailed: ``merge-verification-failed`` with the first tensor that is not as it should be.
    """
    base, merged = read_header(source), read_header(target)
    if merged != expected:
        raise MergeFailed("merge-verification-failed", f"The header of {target.name} is not the planned one.")
    touched = {change.target: change for change in changes}
    with source.open("rb") as base_file, target.open("rb") as merged_file:
        for info in merged.tensors.values():
            change = touched.get(info.name)
            if change is not None and not _must_differ(change, base):
                continue
            places = (
                _Place(base.tensors[info.name], base.data_start, base_file),
                _Place(info, merged.data_start, merged_file),
            )
            if _is_identical(*places) == (change is not None):
                state = "was changed" if change is None else "was not changed"
                raise MergeFailed("merge-verification-failed", f"The tensor {info.name} {state}.")


def _must_differ(change: TensorChange, base: SafetensorsHeader) -> bool:
    is_same_size = change.target in base.tensors and base.tensors[change.target].shape == change.shape
    return (
        is_same_size and change.pair is not None and change.expert is None and change.source == change.target
    )


def _is_identical(left: _Place, right: _Place) -> bool:
    for place in (left, right):
        place.seek_row(0, 0)
    remaining = left.info.size_bytes
    while remaining:
        size = min(remaining, BLOCK_BYTES)
        if left.file.read(size) != right.file.read(size):
            return False
        remaining -= size
    return True
