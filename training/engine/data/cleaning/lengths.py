"""Cleaning step: lengths measured, and the tails of their distribution cut (MISSION C3(2)).

Whole examples go; a text is never shortened, since answers cut in half teach a model to stop half-way.
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from training.engine.data.cleaning.step import Outcome, StepContext, StepKind
from training.engine.data.distributions import LengthCounter
from training.engine.data.examples import Example
from training.engine.errors import ConfigInvalid
from training.engine.settings_rules import choice, count, number, optional

PARTS = ("input", "answer", "example")
QUANTILES: Mapping[str, float] = {
    "p1": 0.01,
    "p5": 0.05,
    "p25": 0.25,
    "p50": 0.5,
    "p75": 0.75,
    "p95": 0.95,
    "p99": 0.99,
    "max": 1.0,
}
SUGGESTED_QUANTILE = 0.95
"""MISSION C3(2): a sequence length at a high quantile instead of the longest example saves much memory."""
SUGGESTED_MULTIPLE = 64
_METHOD = "nearest rank: the smallest length with at least this fraction of all lengths at or below it"


class LengthHistogram:
    """Lengths in bins that grow with them: the edges are 0, 1, 2, 3, 4, 6, 8, 12, 16, ..., two bins for each
    doubling, so that both tails can be seen.
    """

    def __init__(self) -> None:
        self._edges = [0, 1, 2, 3, 4]
        self._counts: Counter[int] = Counter()

    def add(self, length: int) -> None:
        """Count one length, 0 or more."""
        while self._edges[-1] <= length:
            # 4, 6, 8, 12, 16: half as much again, then a third.
            last = self._edges[-1]
            self._edges.append(last * 3 // 2 if last & (last - 1) == 0 else last * 4 // 3)
        self._counts[bisect_right(self._edges, length) - 1] += 1

    def to_json(self) -> dict[str, list[int]]:
        """Return ``edges`` and, one fewer, ``counts``: bin i goes from edges[i] to edges[i + 1] - 1."""
        last = max(self._counts, default=0)
        edges = self._edges[: last + 2]
        return {"edges": edges, "counts": [self._counts[place] for place, _ in enumerate(pairwise(edges))]}


class _Lengths:
    """Lengths of one part of all examples in one unit."""

    def __init__(self) -> None:
        self.counter = LengthCounter()
        self._histogram = LengthHistogram()

    def add(self, length: int) -> None:
        self.counter.add(length)
        self._histogram.add(length)

    def to_json(self) -> dict[str, Any]:
        quantiles = {name: self.counter.quantile(fraction) for name, fraction in QUANTILES.items()}
        return {"quantiles": quantiles, "histogram": self._histogram.to_json()}


class _CutLengths:
    def __init__(self, parameters: Mapping[str, Any], context: StepContext) -> None:
        _refuse_crossed_bounds(parameters)
        self._parameters = parameters
        self._count_tokens = context.count_tokens
        units = ("characters",) if context.count_tokens is None else ("characters", "tokens")
        self._unit: str = units[-1] if parameters["unit"] == "auto" else parameters["unit"]
        self._lengths = {unit: {part: _Lengths() for part in PARTS} for unit in units}
        self._bounds: tuple[int, int | None] | None = None
        self._num_dropped: Counter[str] = Counter()

    def observe(self, example: Example) -> None:
        for unit, parts in self._lengths.items():
            for part, length in self._measure(example, unit).items():
                parts[part].add(length)

    def apply(self, example: Example) -> Outcome:
        # Without a tokenizer there is nothing to hold a number of tokens against; the facts say so.
        if self._unit not in self._lengths:
            return Outcome.kept(example)
        least, most = self._find_bounds()
        length = self._measure(example, self._unit)[self._parameters["part"]]
        if length < least:
            return self._drop("too-short", f"{length} {self._unit}, at least {least}")
        if most is not None and length > most:
            return self._drop("too-long", f"{length} {self._unit}, at most {most}")
        return Outcome.kept(example)

    def facts(self) -> Mapping[str, Any]:
        least, most = self._find_bounds()
        return {
            "unit": self._unit,
            "is_cut": self._unit in self._lengths,
            "shortest_kept": least,
            "longest_kept": most,
            "num_too_short": self._num_dropped["too-short"],
            "num_too_long": self._num_dropped["too-long"],
            "quantile_method": _METHOD,
            "lengths": {
                unit: {part: lengths.to_json() for part, lengths in parts.items()}
                for unit, parts in self._lengths.items()
            },
            **self._suggest_max_length(),
        }

    def _drop(self, reason: str, detail: str) -> Outcome:
        self._num_dropped[reason] += 1
        return Outcome.dropped(reason, detail=detail)

    def _measure(self, example: Example, unit: str) -> dict[str, int]:
        """Return the length of each part; the whole example is the sum of its messages, without template."""
        messages = [self._length(message.content, unit) for message in example.messages]
        by_user = (
            length
            for message, length in zip(example.messages, messages, strict=True)
            if message.role == "user"
        )
        answer = messages[-1] if example.answer is not None else 0
        return {"input": sum(by_user), "answer": answer, "example": sum(messages)}

    def _length(self, text: str, unit: str) -> int:
        return len(text) if unit == "characters" or self._count_tokens is None else self._count_tokens(text)

    def _find_bounds(self) -> tuple[int, int | None]:
        if self._bounds is None:
            low, high = self._parameters["min_length"], self._parameters["max_length"]
            if self._unit in self._lengths:
                counter = self._lengths[self._unit][self._parameters["part"]].counter
                low = max(low, counter.quantile(self._parameters["lower"]) or 0)
                highs = (high, counter.quantile(self._parameters["upper"]))
                high = min((bound for bound in highs if bound is not None), default=None)
            self._bounds = low, high
        return self._bounds

    def _suggest_max_length(self) -> dict[str, Any]:
        tokens = self._lengths.get("tokens")
        if tokens is None:
            return {"suggested_max_length_tokens": None, "why_no_tokens": "no tokenizer was given"}
        counter = tokens["example"].counter
        longest = counter.quantile(SUGGESTED_QUANTILE) or 0
        suggested = -(-max(longest, 1) // SUGGESTED_MULTIPLE) * SUGGESTED_MULTIPLE
        return {
            "suggested_max_length_tokens": suggested,
            "num_longer_than_suggested": counter.count_above(suggested),
            "tokens_are_of": "the contents of all messages; the chat template adds a few to each",
        }


def _refuse_crossed_bounds(parameters: Mapping[str, Any]) -> None:
    most = parameters["max_length"]
    pairs = [("lower", "upper", parameters["lower"] >= parameters["upper"])]
    pairs.append(("min_length", "max_length", most is not None and parameters["min_length"] > most))
    crossed = [f"{low} must be below {high}" for low, high, is_crossed in pairs if is_crossed]
    if crossed:
        raise ConfigInvalid("step-parameters-invalid", f"cut_lengths: {'; '.join(crossed)}")


KIND = StepKind(
    name="cut_lengths",
    version=1,
    summary="Measures lengths and drops whole examples beyond stated quantiles or bounds.",
    source="MISSION C3(2)",
    rules={
        "unit": choice("auto", "characters", "tokens"),
        "part": choice(*PARTS),
        "lower": number(0.0, 1.0),
        "upper": number(0.0, 1.0, low_open=True),
        "min_length": count(0),
        "max_length": optional(count(1)),
    },
    defaults={
        "unit": "auto",
        "part": "example",
        "lower": 0.0,
        "upper": 0.99,
        "min_length": 0,
        "max_length": None,
    },
    build=_CutLengths,
    needs_first_pass=True,
)
KINDS: tuple[StepKind, ...] = (KIND,)
