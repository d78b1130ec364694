"""Rules about the length of rows."""

from typing import Final

from training.engine.lint.findings import LintRule, Observation, explain, refuse, warn
from training.engine.lint.plan import Fact, LengthFacts, TrainingPlan, need

LONG_TAIL_RATIO: Final = 1.5
"""Longest row to 95th percentile. Seed 002, section 6.2: setting the maximum to the percentile often saves a
third of the memory, that is a ratio of 1.5."""
LONG_ROW_TOKENS: Final = 1024
"""Below this the activations of a row are small beside the weights of any model worth tuning."""
MANY_DROPPED_FRACTION: Final = 0.05
"""More than what a maximum at the 95th percentile drops."""


def _dropped(plan: TrainingPlan) -> Observation | None:
    lengths, num_rows = _lengths(plan), need(plan.data).num_rows
    num_dropped, limit = need(lengths.num_too_long), plan.config.training.max_length_tokens
    if not num_dropped:
        return None
    message = (
        f"{num_dropped} of {num_rows} rows are longer than max_length_tokens ({limit}) and are left out; the "
        f"95th percentile is {lengths.common_tokens} tokens, the longest row has {lengths.longest_tokens}."
    )
    if num_dropped >= num_rows:
        return refuse(message, f"Set max_length_tokens to {lengths.common_tokens}.")
    remedy = f"Set max_length_tokens to at least {lengths.common_tokens}, or shorten these rows."
    if num_dropped > MANY_DROPPED_FRACTION * num_rows:
        return warn(message, remedy)
    return explain(message, "Nothing needs to be done unless the long rows are a kind of their own.")


def _maximum_at_the_longest(plan: TrainingPlan) -> Observation | None:
    lengths, limit = _lengths(plan), plan.config.training.max_length_tokens
    common, longest = lengths.common_tokens, lengths.longest_tokens
    if limit < longest or longest <= LONG_ROW_TOKENS or longest < LONG_TAIL_RATIO * common:
        return None
    return warn(
        f"max_length_tokens ({limit}) lets the longest row in ({longest} tokens), while 95 % of rows have "
        f"at most {common}: a few rows take {longest / common:.1f} times the memory for activations.",
        f"Set max_length_tokens to {common}; longer rows are then left out, never cut.",
    )


def _lengths(plan: TrainingPlan) -> LengthFacts:
    return need(need(plan.data).lengths)


RULES: Final = (
    LintRule(
        "rows-dropped-by-length",
        "D2",
        "training.max_length_tokens",
        _dropped,
        frozenset({Fact.LENGTHS, Fact.TOO_LONG}),
    ),
    LintRule(
        "max-length-at-the-maximum",
        "D2",
        "training.max_length_tokens",
        _maximum_at_the_longest,
        frozenset({Fact.LENGTHS}),
    ),
)
