"""Comparing merged tensors with what they should be, in float64, and finding out what a wrong one is instead.

Reads one tensor at a time. The planned change says what was meant; the sum is computed here anew, apart from
the arithmetic of the merge. For a wrong tensor the mistakes that merges are known for are tried one after
another.

Shape letters: N rows, M columns of a tensor's matrix, E experts.
"""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import torch
from safetensors import safe_open

from registry.artifacts.adapter_changes import AdapterModule, TensorChange

MAX_OFF_FRACTION = 1e-3
"""Elements that may lie one unit in the last place off: float32 sums near a tie between two bf16 numbers."""

_RELATIVE_ROUNDING = {torch.bfloat16: 2.0**-8, torch.float16: 2.0**-11, torch.float32: 2.0**-23}
_FURTHER_ROUNDINGS = 8  # scale, addition, magnitude, bias, and the conversions between them
_FACTOR_TOLERANCE = 0.02
_SAME_ROUNDING_FRACTION = 0.999


class TensorState(StrEnum):
    """What a merged tensor is."""

    RIGHT = "right"
    UNCHANGED = "unchanged"
    SCALED = "scaled"
    TRANSPOSED = "transposed"
    ROUNDED = "rounded"
    WITHOUT_MAGNITUDE = "without-magnitude"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorVerdict:
    """How one merged tensor compares.

    Attributes:
        name: In the merged model.
        state: What it is.
        off_fraction: Elements that are not the expected ones, 0-1.
        max_ulp: Largest distance in representable numbers; None when the shape is another.
        factor: For SCALED: by which the delta is too large.
        rank: Of the pair; None without one.
        scaling: Of the pair; None without one.
    """

    name: str
    state: TensorState
    off_fraction: float
    max_ulp: int | None
    factor: float | None = None
    rank: int | None = None
    scaling: float | None = None


class TensorFiles:
    """Reads tensors of several safetensors files, memory-mapped.

    Args:
        folder: Where they are.
        names: Of the files; one that is not there is passed over.
    """

    def __init__(self, folder: Path, names: Iterable[str]) -> None:
        """Look up which file holds which tensor."""
        self._folder = folder
        self.shard_of: dict[str, str] = {}
        for name in names:
            if (folder / name).is_file():
                with safe_open(folder / name, framework="pt") as file:
                    self.shard_of.update(dict.fromkeys(file.keys(), name))

    def get(self, name: str) -> torch.Tensor:
        """Return a tensor as stored."""
        with safe_open(self._folder / self.shard_of[name], framework="pt") as file:
            tensor: torch.Tensor = file.get_tensor(name)
        return tensor


class TensorChecker:
    """Judges merged tensors.

    Args:
        base: Of the base model.
        adapter: Of the adapter.
        merged: Of the merged model.
    """

    def __init__(self, base: TensorFiles, adapter: TensorFiles, merged: TensorFiles) -> None:
        """Keep the three."""
        self._base = base
        self._adapter = adapter
        self._merged = merged

    def check(self, change: TensorChange) -> TensorVerdict:
        """Judge one changed tensor."""
        pair = change.pair
        if change.target not in self._merged.shard_of:
            return _verdict(change, TensorState.UNCHANGED, 1.0, None)
        merged = self._merged.get(change.target)
        start = self._start(change)
        delta = None if pair is None else self._delta(change, pair)
        expected = self._finish(change, start, delta)
        if merged.shape != expected.shape:
            return _verdict(change, TensorState.OTHER, 1.0, None)
        distance = _ulp_distance(merged, expected.to(merged.dtype))
        off_fraction, max_ulp = float((distance > 0).double().mean()), int(distance.max())
        is_near = max_ulp <= 1 or self._is_within_float32(change, merged, expected, start)
        # A merge into float32 rounds at every step as finely as at the end, so its last place says nothing.
        is_rare = merged.dtype == torch.float32 or off_fraction <= max(MAX_OFF_FRACTION, 2 / merged.numel())
        if is_near and is_rare:
            return _verdict(change, TensorState.RIGHT, off_fraction, max_ulp)
        state, factor = self._explain(change, merged, start, delta)
        return _verdict(change, state, off_fraction, max_ulp, factor)

    def is_untouched(self, name: str) -> bool:
        """Return whether a tensor that is not to be changed is the base's, element for element."""
        if name not in self._merged.shard_of:
            return False
        left, right = self._base.get(name), self._merged.get(name)
        return left.dtype == right.dtype and torch.equal(left, right)

    def _start(self, change: TensorChange) -> torch.Tensor:
        """Return what the change starts from, in float64."""
        files, name = (self._base, change.source) if change.whole is None else (self._adapter, change.whole)
        return files.get(name).double().reshape(change.shape)

    def _delta(
        self,
        change: TensorChange,
        pair: AdapterModule,
        *,
        rounded_to: torch.dtype | None = None,
        is_absolute: bool = False,
    ) -> torch.Tensor:
        """Return the delta in float64, in the tensor's shape.

        Args:
            change: The tensor.
            pair: Its pair.
            rounded_to: Rounds the factors first; None leaves them.
            is_absolute: Whether absolute values are multiplied and summed instead, for bounds.
        """
        a, b = self._adapter.get(pair.tensor_a), self._adapter.get(pair.tensor_b)
        if rounded_to is not None:
            a, b = a.to(rounded_to), b.to(rounded_to)
        if is_absolute:
            a, b = a.abs(), b.abs()
        stacked_a = a.double().reshape(pair.num_experts, pair.rank, -1)
        stacked_b = b.double().reshape(len(b), pair.rank, pair.num_experts)
        delta = torch.einsum("ore,eri->eoi", stacked_b, stacked_a)
        delta = delta * (abs(pair.scaling) if is_absolute else pair.scaling)
        if pair.is_transposed:
            delta = delta.transpose(1, 2)
        if change.expert is not None:
            delta = delta[change.expert, change.delta_begin : change.delta_begin + change.shape[0]]
        return delta.reshape(change.shape)

    def _is_within_float32(
        self, change: TensorChange, merged: torch.Tensor, expected: torch.Tensor, start: torch.Tensor
    ) -> bool:
        """Return whether every element is as near as float32 arithmetic promises.

        A sum of r products rounded to float32 is off by at most r 2^-24 times the sum of their absolute
        values (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1). Where base and delta
        nearly cancel, that is more than a unit in the last place of the small result.
        """
        terms, rank = start.abs(), 0
        if change.pair is not None:
            terms, rank = terms + self._delta(change, change.pair, is_absolute=True), change.pair.rank
            if change.pair.tensor_magnitude is not None:
                terms = (
                    terms
                    * self._magnitude_factors(change.pair, start + self._delta(change, change.pair)).abs()
                )
        if change.bias is not None:
            terms = terms + (self._adapter.get(change.bias.tensor).double() * change.bias.scaling).abs()
        rounding = _RELATIVE_ROUNDING[merged.dtype] * expected.abs()
        allowed = (rank + _FURTHER_ROUNDINGS) * 2.0**-24 * terms + rounding
        return bool(((merged.double() - expected).abs() <= allowed).all())

    def _magnitude_factors(self, pair: AdapterModule, summed: torch.Tensor) -> torch.Tensor:
        """Return DoRA's factor of each output, in float64: [N, 1] or [1, M]."""
        magnitude = self._adapter.get(pair.tensor_magnitude or "").double()
        inputs = 0 if pair.is_transposed else 1
        norms: torch.Tensor = summed.square().sum(dim=inputs).sqrt()
        return (magnitude / norms).unsqueeze(inputs)

    def _finish(self, change: TensorChange, start: torch.Tensor, delta: torch.Tensor | None) -> torch.Tensor:
        """Return the finished tensor in float64."""
        result = start if delta is None else start + delta
        pair = change.pair
        if pair is not None and pair.tensor_magnitude is not None:
            result = result * self._magnitude_factors(pair, result)
        if change.bias is not None:
            result = result + self._adapter.get(change.bias.tensor).double() * change.bias.scaling
        if change.rows is not None:
            result = result.clone()
            result[list(change.rows.indices)] = self._adapter.get(change.rows.tensor).double()
        return result

    def _explain(
        self, change: TensorChange, merged: torch.Tensor, start: torch.Tensor, delta: torch.Tensor | None
    ) -> tuple[TensorState, float | None]:
        """Try the known mistakes; return the first that gives this tensor, and its factor."""
        if self._is_base(change, merged):
            return TensorState.UNCHANGED, None
        if delta is None or change.pair is None:
            return TensorState.OTHER, None
        if change.pair.tensor_magnitude is not None:
            plain = (start + delta).to(merged.dtype)
            return (TensorState.WITHOUT_MAGNITUDE if _is_same(merged, plain) else TensorState.OTHER), None
        if any(_is_same(merged, rounded) for rounded in self._round_early(change, change.pair, start, delta)):
            return TensorState.ROUNDED, None
        difference = merged.double() - start
        tolerance = _RELATIVE_ROUNDING[merged.dtype] * float(merged.double().norm())
        is_square = delta.dim() == 2 and delta.shape[0] == delta.shape[1]
        if is_square and float((difference - delta.T).norm()) <= tolerance:
            return TensorState.TRANSPOSED, None
        factor = float((difference * delta).sum() / delta.square().sum())
        if float((difference - factor * delta).norm()) <= tolerance * max(1.0, abs(factor)):
            return TensorState.SCALED, factor
        return TensorState.OTHER, None

    def _is_base(self, change: TensorChange, merged: torch.Tensor) -> bool:
        base = self._base.get(change.source)
        return base.shape == merged.shape and torch.equal(merged, base)

    def _round_early(
        self, change: TensorChange, pair: AdapterModule, start: torch.Tensor, delta: torch.Tensor
    ) -> Iterator[torch.Tensor]:
        """Give what comes out when the delta or its factors are rounded before the addition."""
        stored = self._base.get(change.source).dtype
        for dtype in (torch.bfloat16, torch.float16):
            yield (start + delta.to(dtype).double()).to(stored)
            from_rounded = self._delta(change, pair, rounded_to=dtype)
            yield (start + from_rounded).to(stored)
            yield (start + from_rounded.to(dtype).double()).to(stored)


def name_factor(verdict: TensorVerdict) -> list[str]:
    """Return what may explain the factor of a scaled tensor: several when rank and scaling make them
    equal.
    """
    if verdict.factor is None or verdict.rank is None or verdict.scaling is None:
        return []
    root = math.sqrt(verdict.rank)
    known = {
        "merged-twice": 2.0,
        "scale-root-of-rank": root,
        "scale-rank-instead-of-root": 1 / root,
        "scale-left-out": 1 / verdict.scaling,
        "scale-not-divided": float(verdict.rank),
        "delta-subtracted": -1.0,
    }
    return [
        name
        for name, factor in known.items()
        if abs(verdict.factor - factor) <= _FACTOR_TOLERANCE * abs(factor)
        and abs(factor - 1) > _FACTOR_TOLERANCE
    ]


def _verdict(
    change: TensorChange,
    state: TensorState,
    off_fraction: float,
    max_ulp: int | None,
    factor: float | None = None,
) -> TensorVerdict:
    return TensorVerdict(
        name=change.target,
        state=state,
        off_fraction=off_fraction,
        max_ulp=max_ulp,
        factor=factor,
        rank=None if change.pair is None else change.pair.rank,
        scaling=None if change.pair is None else change.pair.scaling,
    )


def _is_same(merged: torch.Tensor, candidate: torch.Tensor) -> bool:
    return float((merged == candidate).double().mean()) >= _SAME_ROUNDING_FRACTION


def _ulp_distance(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return the distance in representable numbers of the dtype: [N, M], int64."""
    integers = torch.int32 if left.dtype == torch.float32 else torch.int16
    largest = torch.iinfo(integers).max

    def order(tensor: torch.Tensor) -> torch.Tensor:
        bits = tensor.contiguous().view(integers).long()
        return torch.where(bits < 0, -(bits & largest), bits)

    return (order(left) - order(right)).abs()
