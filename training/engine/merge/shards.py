"""Writing one merged weight file: a copy of the base's file in which only the adapted weights' bytes differ.

Names, shapes, dtypes, order and metadata are those of the base because its header is kept as it is. At most
one block of rows and one pair of factors are in memory.
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import torch
from safetensors import safe_open

from registry.artifacts.adapter_tensors import AdapterModule
from registry.artifacts.safetensors_header import SafetensorsHeader, TensorInfo, read_header
from training.engine.errors import MergeFailed, MergeRefused
from training.engine.merge.arithmetic import LoraFactors, merge_rows

BLOCK_BYTES = 32 * 1024 * 1024
"""Bytes of the base weight that are merged at a time."""

_TORCH_DTYPES = {"BF16": torch.bfloat16, "F16": torch.float16, "F32": torch.float32}


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedTensor:
    """What the merge did to one weight.

    Attributes:
        name: In the base model.
        max_abs_delta: Largest absolute element of the delta, before rounding.
        changed_fraction: Elements that differ from the base after rounding, 0-1, never 0.
    """

    name: str
    max_abs_delta: float
    changed_fraction: float


class AdapterReader:
    """Reads pairs of factors out of an adapter's safetensors file, memory-mapped.

    Args:
        path: adapter_model.safetensors.
    """

    def __init__(self, path: Path) -> None:
        """Open nothing yet."""
        self._path = path

    def read(self, module: AdapterModule) -> LoraFactors:
        """Return a pair in float32.

        Raises:
            MergeRefused: ``adapter-not-finite`` if an element is NaN or infinite.
        """
        with safe_open(self._path, framework="pt") as file:
            a, b = (file.get_tensor(name).to(torch.float32) for name in (module.tensor_a, module.tensor_b))
        for name, tensor in ((module.tensor_a, a), (module.tensor_b, b)):
            if not bool(tensor.isfinite().all()):
                raise MergeRefused(
                    "adapter-not-finite",
                    f"The adapter's tensor {name} holds NaN or infinity: the training diverged. "
                    "Submit an earlier checkpoint or train again with a lower learning rate.",
                )
        return LoraFactors(a, b, module.scaling, module.is_transposed)


def write_merged_shard(
    source: Path,
    target: Path,
    modules: Sequence[AdapterModule],
    reader: AdapterReader,
    *,
    on_tensor: Callable[[MergedTensor], None],
) -> None:
    """Write a weight file with the adapted weights merged.

    Args:
        source: Weight file of the base.
        target: File to write.
        modules: The adapted weights in this file.
        reader: Of the adapter.
        on_tensor: Called after each merged weight.

    Raises:
        MergeRefused: ``adapter-not-finite``, ``merge-not-finite`` or ``adapter-tensor-without-effect``.
    """
    shutil.copyfile(source, target)
    header = read_header(source)
    with source.open("rb") as base_file, target.open("r+b") as merged_file:
        for module in modules:
            info = header.tensors[module.base_tensor]
            on_tensor(_merge_tensor(info, header.data_start, reader.read(module), base_file, merged_file))


def _merge_tensor(
    info: TensorInfo, data_start: int, factors: LoraFactors, base_file: BinaryIO, merged_file: BinaryIO
) -> MergedTensor:
    """Merge one weight, block by block."""
    num_rows, row_bytes = info.shape[0], info.size_bytes // info.shape[0]
    block_rows = max(1, BLOCK_BYTES // row_bytes)
    num_changed, max_abs_delta = 0, 0.0
    for begin in range(0, num_rows, block_rows):
        rows = min(block_rows, num_rows - begin)
        offset = data_start + info.begin + begin * row_bytes
        base_file.seek(offset)
        buffer = bytearray(base_file.read(rows * row_bytes))
        base_rows = torch.frombuffer(buffer, dtype=_TORCH_DTYPES[info.dtype]).view(rows, info.shape[1])
        block = merge_rows(base_rows, factors, begin=begin)
        if not block.is_finite:
            raise MergeRefused(
                "merge-not-finite",
                f"Merging into {info.name} gives values that {info.dtype} cannot hold (NaN or infinity). "
                "Train again with a lower learning rate, or look at lora_alpha.",
            )
        num_changed += block.num_changed
        max_abs_delta = max(max_abs_delta, block.max_abs_delta)
        merged_file.seek(offset)
        merged_file.write(_to_bytes(block.rows))
    if num_changed == 0:
        raise MergeRefused(
            "adapter-tensor-without-effect",
            f"The adapter does not change {info.name} at all: its lora_B is zero, or the change is lost in "
            f"rounding to {info.dtype}. It was not trained, or saved before training.",
        )
    return MergedTensor(
        name=info.name, max_abs_delta=max_abs_delta, changed_fraction=num_changed / info.num_elements
    )


def _to_bytes(tensor: torch.Tensor) -> bytes:
    """Return the elements' bytes; NumPy knows no bfloat16, so they pass as bytes."""
    return tensor.contiguous().view(torch.uint8).numpy().tobytes()


def verify_shard(source: Path, target: Path, touched: frozenset[str]) -> None:
    """Read a written file back: same header, every untouched tensor identical byte for byte, the others not.

    Raises:
        MergeFailed: ``merge-verification-failed`` with the first tensor that is not as it should be.
    """
    header = read_header(source)
    if read_header(target) != header:
        raise MergeFailed(
            "merge-verification-failed", f"The header of {target.name} differs from the base's."
        )
    with source.open("rb") as base_file, target.open("rb") as merged_file:
        for info in header.tensors.values():
            if _is_identical(info, header, base_file, merged_file) == (info.name in touched):
                state = "was not changed" if info.name in touched else "was changed"
                raise MergeFailed("merge-verification-failed", f"The tensor {info.name} {state}.")


def _is_identical(
    info: TensorInfo, header: SafetensorsHeader, base_file: BinaryIO, merged_file: BinaryIO
) -> bool:
    for file in (base_file, merged_file):
        file.seek(header.data_start + info.begin)
    remaining = info.size_bytes
    while remaining:
        size = min(remaining, BLOCK_BYTES)
        if base_file.read(size) != merged_file.read(size):
            return False
        remaining -= size
    return True
