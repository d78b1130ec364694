"""Reads an adapter's tensors, memory-mapped, and turns a planned change into what is computed for it."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open

from registry.artifacts.adapter_changes import AdapterModule, TensorChange
from training.engine.errors import MergeRefused
from training.engine.merge.arithmetic import LoraFactors, Magnitudes, RowSpan

BLOCK_BYTES = 32 * 1024 * 1024
"""Bytes of a weight that are handled at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorUpdate:
    """What is computed for one tensor, on its matrix of rows: [n] is [n, 1], [experts, p, q] is [experts *
    p, q].

    Attributes:
        spans: All rows, in order.
        magnitudes: DoRA's; None without.
        added: [rows, 1], added at the end, float32; None for nothing.
        row_indices: Rows that are replaced, ascending: [num]; None for none.
        row_values: Their new values, float32: [num, columns].
    """

    spans: tuple[RowSpan, ...]
    magnitudes: Magnitudes | None = None
    added: torch.Tensor | None = None
    row_indices: torch.Tensor | None = None
    row_values: torch.Tensor | None = None

    @property
    def is_plain(self) -> bool:
        """Whether nothing is done but adding a low-rank delta."""
        return self.magnitudes is None and self.added is None and self.row_indices is None


class AdapterReader:
    """Reads an adapter's safetensors file.

    Args:
        path: adapter_model.safetensors.
    """

    def __init__(self, path: Path) -> None:
        """Open nothing yet."""
        self._path = path

    def read_update(self, change: TensorChange) -> TensorUpdate:
        """Return what is computed for a tensor.

        Raises:
            MergeRefused: ``adapter-not-finite`` if an element is NaN or infinite.
        """
        num_rows = change.shape[0] * (change.shape[1] if len(change.shape) == 3 else 1)
        update = TensorUpdate(spans=tuple(self._read_spans(change, num_rows)))
        pair = change.pair
        magnitudes = None
        if pair is not None and pair.tensor_magnitude is not None:
            magnitudes = Magnitudes(self.read(pair.tensor_magnitude), is_by_column=pair.is_transposed)
        added = None
        if change.bias is not None:
            added = (self.read(change.bias.tensor) * change.bias.scaling)[:, None]
        if change.rows is None:
            return TensorUpdate(spans=update.spans, magnitudes=magnitudes, added=added)
        indices = torch.tensor(change.rows.indices)
        order = indices.argsort()
        return TensorUpdate(
            spans=update.spans,
            magnitudes=magnitudes,
            added=added,
            row_indices=indices[order],
            row_values=self.read(change.rows.tensor)[order],
        )

    def read(self, name: str) -> torch.Tensor:
        """Return a tensor in float32.

        Raises:
            MergeRefused: ``adapter-not-finite``.
        """
        with self._open() as file:
            tensor: torch.Tensor = file.get_tensor(name).to(torch.float32)
        _require_finite(name, tensor)
        return tensor

    def read_rows(self, name: str, begin: int, end: int) -> torch.Tensor:
        """Return rows of a tensor as stored: [end - begin, columns].

        Raises:
            MergeRefused: ``adapter-not-finite``.
        """
        with self._open() as file:
            rows: torch.Tensor = file.get_slice(name)[begin:end]
        _require_finite(name, rows)
        return rows.reshape(end - begin, -1)

    def require_equal(self, first: str, second: str) -> None:
        """Check that two tensors hold the same values, as the two names of one matrix must.

        Raises:
            MergeRefused: ``tied-weights-differ``.
        """
        with self._open() as file:
            left, right = file.get_slice(first), file.get_slice(second)
            num_rows, num_columns = left.get_shape()[0], left.get_shape()[-1]
            block = max(1, BLOCK_BYTES // (4 * num_columns))
            is_equal = left.get_shape() == right.get_shape() and all(
                torch.equal(left[begin : begin + block].float(), right[begin : begin + block].float())
                for begin in range(0, num_rows, block)
            )
        if not is_equal:
            raise MergeRefused(
                "tied-weights-differ",
                f"The adapter's tensors {first} and {second} stand for one matrix, but hold different "
                "values: the "
                "file was put together from several. Save the adapter again with peft.",
            )

    def _read_spans(self, change: TensorChange, num_rows: int) -> Iterator[RowSpan]:
        pair = change.pair
        if pair is None:
            yield RowSpan(0, num_rows, None)
            return
        a, b = self.read(pair.tensor_a), self.read(pair.tensor_b)
        if pair.num_experts == 1 and len(change.shape) < 3 and change.expert is None:
            yield RowSpan(0, num_rows, LoraFactors(a, b, pair.scaling, pair.is_transposed))
        elif change.expert is not None:
            factors = _factors_of_expert(a, b, pair, change.expert)
            yield RowSpan(0, num_rows, factors, change.delta_begin)
        else:
            rows = change.shape[1]
            for expert in range(pair.num_experts):
                yield RowSpan(expert * rows, (expert + 1) * rows, _factors_of_expert(a, b, pair, expert))

    @contextmanager
    def _open(self) -> Iterator[Any]:
        with safe_open(self._path, framework="pt") as file:
            yield file


def _factors_of_expert(a: torch.Tensor, b: torch.Tensor, pair: AdapterModule, expert: int) -> LoraFactors:
    """Return one expert's factors: A is [experts * r, n] by expert, B [m, r * experts] with the expert
    fastest.
    """
    a_expert = a.reshape(pair.num_experts, pair.rank, -1)[expert]
    b_expert = b.reshape(b.shape[0], pair.rank, pair.num_experts)[:, :, expert].contiguous()
    return LoraFactors(a_expert, b_expert, pair.scaling, pair.is_transposed)


def _require_finite(name: str, tensor: torch.Tensor) -> None:
    if not bool(tensor.isfinite().all()):
        raise MergeRefused(
            "adapter-not-finite",
            f"The adapter's tensor {name} holds NaN or infinity: the training diverged. "
            "Submit an earlier checkpoint or train again with a lower learning rate.",
        )
