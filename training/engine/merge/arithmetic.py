"""The sum W + scaling * B @ A with one rounding at the end, and what the variants of LoRA add to it.

Everything is upcast to float32 first, and the result is cast to the base tensor's own dtype once. Rounding
the delta before the addition, as a merge of bf16 tensors does, changes a tenth of the elements (FACTS section
2). DoRA's norms are summed in float64 (arXiv:2402.09353, equation 5: m * (W + s B A) / ||W + s B A||, the
norm over the inputs of each output).

Shape letters: R rows of the stored weight in one block, D_in, D_out, r rank.
"""

from dataclasses import dataclass

import torch


@dataclass(frozen=True, slots=True)
class LoraFactors:
    """A low-rank delta, in float32.

    Attributes:
        a: [r, D_in].
        b: [D_out, r].
        scaling: alpha / r, or alpha / sqrt(r) with rank-stabilised scaling.
        is_transposed: Whether the weight is stored as [D_in, D_out] (Conv1D) instead of [D_out, D_in].
    """

    a: torch.Tensor
    b: torch.Tensor
    scaling: float
    is_transposed: bool

    def delta_rows(self, begin: int, end: int) -> torch.Tensor:
        """Return rows ``begin`` to ``end`` of the delta as the weight is stored: [R, columns], float32."""
        if self.is_transposed:
            return (self.a[:, begin:end].T @ self.b.T) * self.scaling
        return (self.b[begin:end] @ self.a) * self.scaling


@dataclass(frozen=True, slots=True)
class RowSpan:
    """Some rows of a weight and the delta that they get.

    Attributes:
        begin: First row of the weight; experts follow each other, [experts, p, q] being [experts * p, q].
        end: One past the last row.
        factors: The delta; None adds nothing.
        delta_begin: Row of the delta that belongs to ``begin``.
    """

    begin: int
    end: int
    factors: LoraFactors | None
    delta_begin: int = 0

    def delta_rows(self, begin: int, end: int) -> torch.Tensor | None:
        """Return the delta of rows ``begin`` to ``end`` of the weight, float32; None when nothing is
        added.
        """
        if self.factors is None:
            return None
        offset = self.delta_begin - self.begin
        return self.factors.delta_rows(begin + offset, end + offset)


@dataclass(frozen=True, slots=True)
class Magnitudes:
    """DoRA's trained magnitudes, in float32.

    Attributes:
        values: [D_out].
        is_by_column: Whether an output is a column of the stored weight (Conv1D, embeddings) instead of a
            row.
    """

    values: torch.Tensor
    is_by_column: bool

    def scale(self, sums_of_squares: torch.Tensor, begin: int, end: int) -> torch.Tensor:
        """Return the factors for rows ``begin`` to ``end``: [R, 1], or [1, D_out] by column, float32.

        Args:
            sums_of_squares: Of the outputs of these rows, or of all columns over all rows, float64.
            begin: First row.
            end: One past the last row.
        """
        values = self.values if self.is_by_column else self.values[begin:end]
        factors = (values.to(torch.float64) / sums_of_squares.sqrt()).to(torch.float32)
        return factors[None, :] if self.is_by_column else factors[:, None]


@dataclass(frozen=True, slots=True)
class MergedBlock:
    """Some rows of a merged weight.

    Attributes:
        rows: [R, columns], dtype of the merged tensor.
        max_abs_delta: Largest absolute change of an element, before rounding.
        is_finite: Whether all elements are finite after rounding.
    """

    rows: torch.Tensor
    max_abs_delta: float
    is_finite: bool


def add_delta(base_rows: torch.Tensor, delta: torch.Tensor | None) -> torch.Tensor:
    """Return base + delta in float32: [R, columns]."""
    rows = base_rows.to(torch.float32)
    return rows if delta is None else rows + delta


def sum_squares(rows: torch.Tensor, *, is_by_column: bool) -> torch.Tensor:
    """Return the sums of squares in float64: [R], or [columns] when an output is a column."""
    return rows.to(torch.float64).square().sum(dim=0 if is_by_column else 1)


def round_rows(
    summed: torch.Tensor, base_rows: torch.Tensor, delta: torch.Tensor | None, dtype: torch.dtype
) -> MergedBlock:
    """Cast finished rows once.

    Args:
        summed: [R, columns], float32.
        base_rows: What they were before: [R, columns], any dtype.
        delta: What was added, when nothing else was done; None measures the change itself.
        dtype: Of the merged tensor.
    """
    rows = summed.to(dtype)
    change = summed - base_rows.to(torch.float32) if delta is None else delta
    return MergedBlock(
        rows=rows,
        max_abs_delta=float(change.abs().max()) if change.numel() else 0.0,
        is_finite=bool(rows.isfinite().all()),
    )
