"""The sum W + scaling * B @ A with one rounding at the end.

Everything is upcast to float32 first, and the result is cast to the base tensor's own dtype once. Rounding
the delta before the addition, as a merge of bf16 tensors does, changes a tenth of the elements (FACTS section
2).

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
class MergedBlock:
    """Some rows of a merged weight.

    Attributes:
        rows: [R, columns], dtype of the base tensor.
        max_abs_delta: Largest absolute element of the float32 delta.
        num_changed: Elements that differ from the base after rounding.
        is_finite: Whether all elements are finite after rounding.
    """

    rows: torch.Tensor
    max_abs_delta: float
    num_changed: int
    is_finite: bool


def merge_rows(base_rows: torch.Tensor, factors: LoraFactors, *, begin: int) -> MergedBlock:
    """Add the delta to some rows of a weight.

    Args:
        base_rows: [R, columns] in the base tensor's dtype.
        factors: The delta.
        begin: Number of the first row.
    """
    delta = factors.delta_rows(begin, begin + base_rows.shape[0])
    merged = (base_rows.to(torch.float32) + delta).to(base_rows.dtype)
    return MergedBlock(
        rows=merged,
        max_abs_delta=float(delta.abs().max()),
        num_changed=int((merged != base_rows).sum()),
        is_finite=bool(merged.isfinite().all()),
    )
