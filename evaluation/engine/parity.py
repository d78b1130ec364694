"""Do two forms of a model answer alike? (E2, E3; DESIGN section 6.)

Greedy outputs of the same weights can differ in the last bits, and one bit can decide between two tokens
that are equally likely. So: equal text or equal JSON agrees; else the first differing token is looked at,
and when both forms see the two candidates within a stated bound of each other it is a near tie, else a
divergence. What follows the first difference says nothing.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from evaluation.engine.backends.base import GenerationOutput
from evaluation.engine.json_text import json_equal
from evaluation.engine.scoring.json_output import parse_output

DEFAULT_NEAR_TIE_NATS: Final = 0.5
"""Bound of a near tie. Logits of language models reach 16-32, where neighbouring bf16 numbers lie 0.125
apart; merging rounds the weights and running an adapter rounds its products, so two logits may each be off
by two such steps. Measured on SmolLM2-135M under vLLM (bf16, rank 16): 24 of 50 canaries differ somewhere,
every gap is a multiple of 0.0625, and the largest is 0.25."""

Agreement = Literal["agree", "near_tie", "diverged"]


@dataclass(frozen=True, slots=True)
class CanaryComparison:
    """Two outputs for one prompt.

    Attributes:
        example_id: The canary.
        agreement: What came of it.
        position: Index of the first differing token; None when they agree.
        gap_nats: The larger of the two forms' gaps between their own token and the other's, in nats; None
            when they agree, and when the other's token was not among the likeliest ones (then the gap is
            large).
    """

    example_id: str
    agreement: Agreement
    position: int | None = None
    gap_nats: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the comparison as it stands in a row's details."""
        return {"agreement": self.agreement, "position": self.position, "gap_nats": self.gap_nats}


def compare_outputs(
    example_id: str,
    first: GenerationOutput,
    second: GenerationOutput,
    near_tie_nats: float = DEFAULT_NEAR_TIE_NATS,
) -> CanaryComparison:
    """Compare two greedy outputs for the same prompt, with log-probabilities for every token."""
    if first.text == second.text and first.finish_reason == second.finish_reason:
        return CanaryComparison(example_id, "agree")
    left, right = parse_output(first.text), parse_output(second.text)
    if left.is_strict and right.is_strict and json_equal(left.value, right.value):
        return CanaryComparison(example_id, "agree")
    position = _first_difference(first.token_ids, second.token_ids)
    gaps = (_gap(first, second.token_ids, position), _gap(second, first.token_ids, position))
    if gaps[0] is None or gaps[1] is None:
        return CanaryComparison(example_id, "diverged", position)
    gap = max(gaps[0], gaps[1])
    return CanaryComparison(example_id, "near_tie" if gap <= near_tie_nats else "diverged", position, gap)


def summarise_parity(
    comparisons: Sequence[CanaryComparison],
    *,
    noise_floor: Sequence[CanaryComparison] | None,
    num_differ_from_base: int | None,
    num_refused: int,
    near_tie_nats: float,
) -> dict[str, Any]:
    """Return the ``canary_parity`` object of metrics.json.

    Args:
        comparisons: One for each canary that both forms answered.
        noise_floor: The same form against itself; None when it was not measured.
        num_differ_from_base: Canaries that the shipping form answers otherwise than the base, near ties
            aside (see ``count_differences``); None when unknown.
        num_refused: Canaries that do not fit into the context and that both forms refuse alike.
        near_tie_nats: The bound that was used.
    """
    return {
        "num_compared": len(comparisons),
        "num_agree": _count(comparisons, "agree"),
        "num_near_tie": _count(comparisons, "near_tie"),
        "num_diverged": _count(comparisons, "diverged"),
        "num_refused": num_refused,
        "near_tie_bound_nats": near_tie_nats,
        "noise_floor_compared": None if noise_floor is None else len(noise_floor),
        "noise_floor_diverged": None if noise_floor is None else _count(noise_floor, "diverged"),
        "noise_floor_near_tie": None if noise_floor is None else _count(noise_floor, "near_tie"),
        "num_differ_from_base": num_differ_from_base,
        "diverged": [c.example_id for c in comparisons if c.agreement == "diverged"],
        "near_tie": [c.example_id for c in comparisons if c.agreement == "near_tie"],
    }


def count_differences(
    outputs: Mapping[str, GenerationOutput],
    base_answers: Mapping[str, Sequence[int]],
    near_tie_nats: float = DEFAULT_NEAR_TIE_NATS,
) -> int | None:
    """Count the examples that a model answers otherwise than the base, near ties aside.

    An adapter without any effect also differs here and there, as batches are composed otherwise; but then
    only where two tokens are about equally likely.

    Args:
        outputs: The model's outputs with log-probabilities, by example id.
        base_answers: The base's token ids, by example id.
        near_tie_nats: A first differing token within this gap is no difference.

    Returns:
        None when the base lacks an example, as then nothing can be said.
    """
    if not outputs or not outputs.keys() <= base_answers.keys():
        return None
    return sum(_differs(output, base_answers[name], near_tie_nats) for name, output in outputs.items())


def _differs(output: GenerationOutput, base_token_ids: Sequence[int], near_tie_nats: float) -> bool:
    if tuple(base_token_ids) == output.token_ids:
        return False
    gap = _gap(output, base_token_ids, _first_difference(output.token_ids, base_token_ids))
    return gap is None or gap > near_tie_nats


def _first_difference(first: Sequence[int], second: Sequence[int]) -> int:
    for position, (left, right) in enumerate(zip(first, second, strict=False)):
        if left != right:
            return position
    return min(len(first), len(second))


def _gap(own: GenerationOutput, other_token_ids: Sequence[int], position: int) -> float | None:
    """Return how much likelier (nats) a form finds its own token than the other's, or None when unknown."""
    if own.logprobs is None or position >= min(len(own.token_ids), len(other_token_ids), len(own.logprobs)):
        return None
    likely = own.logprobs[position]
    own_token, other_token = own.token_ids[position], other_token_ids[position]
    if own_token not in likely or other_token not in likely:
        return None
    return abs(likely[own_token] - likely[other_token])


def _count(comparisons: Iterable[CanaryComparison], agreement: Agreement) -> int:
    return sum(comparison.agreement == agreement for comparison in comparisons)
