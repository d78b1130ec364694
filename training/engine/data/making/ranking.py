"""Ordering candidate answers to one input by how far they agree with each other (MISSION C5).

What several instructions or models arrive at by themselves is more likely right than what one says alone
(self-consistency: Wang et al., 2022, https://arxiv.org/abs/2203.11171).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from training.engine.data.shingles import jaccard, make_shingles, normalise

AGREEMENT_DIGITS = 4
"""Agreements are rounded to this many digits before they are compared, so that equal means equal."""

_CJK = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TERM = re.compile(rf"[{_CJK}]|[^\W{_CJK}]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One output of a teacher for one input.

    Attributes:
        number: 1-based place among the candidates of every input.
        teacher: The teacher's name.
        variant: 1-based number of the instruction among the teacher's.
        prompt_sha256: Of the prompt that it answers.
        text: The answer, or the raw output when it was refused.
        fields: Leaves of a JSON answer; empty for free text.
    """

    number: int
    teacher: str
    variant: int
    prompt_sha256: str
    text: str
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedCandidate:
    """An acceptable candidate in its place.

    Attributes:
        candidate: The candidate.
        agreement: Mean agreement with the other acceptable candidates, 0-1, four digits; None when it is the
            only one.
        judge_score: What the judge gave it, 0-1; None when no judge compared it.
        score: What the order follows.
    """

    candidate: Candidate
    agreement: float | None
    judge_score: float | None
    score: float


def rank_candidates(
    candidates: Sequence[Candidate],
    agreements: Sequence[float | None],
    *,
    judge_scores: Sequence[float] | None = None,
    judge_weight: float = 0.0,
) -> tuple[RankedCandidate, ...]:
    """Order candidates, the best first; equal ones keep their order.

    Args:
        candidates: Acceptable ones of one input.
        agreements: One for each (see ``measure_agreements``).
        judge_scores: One for each, 0-1; None without a judge.
        judge_weight: Part of the judge in the score, 0-1; the rest is agreement.
    """
    ranked = []
    for number, (candidate, agreement) in enumerate(zip(candidates, agreements, strict=True)):
        judged = None if judge_scores is None else judge_scores[number]
        score = agreement or 0.0
        if judged is not None:
            score = (1 - judge_weight) * score + judge_weight * judged
        ranked.append(
            RankedCandidate(
                candidate=candidate,
                agreement=agreement,
                judge_score=judged,
                score=round(score, AGREEMENT_DIGITS),
            )
        )
    return tuple(sorted(ranked, key=lambda item: -item.score))


def measure_agreements(table: Sequence[Sequence[float]]) -> tuple[float | None, ...]:
    """Return each row's mean without its own place; None when there is but one.

    Args:
        table: Symmetric agreements between candidates, 0-1.
    """
    if len(table) < 2:
        return (None,) * len(table)
    return tuple(
        round(
            sum(value for column, value in enumerate(row) if column != number) / (len(row) - 1),
            AGREEMENT_DIGITS,
        )
        for number, row in enumerate(table)
    )


def tabulate_overlaps(texts: Sequence[str]) -> list[list[float]]:
    """Return how far free texts overlap, each with each: half the similarity of their shingles, half that of
    their terms.

    Shingles see the order of words; terms still say something of short answers, which share no shingle.
    """
    normal = [normalise(text) for text in texts]
    shingles = [make_shingles(text) for text in normal]
    terms = [frozenset(_TERM.findall(text)) for text in normal]
    places = range(len(texts))
    return [
        [
            1.0
            if normal[i] == normal[j]
            else (jaccard(shingles[i], shingles[j]) + jaccard(terms[i], terms[j])) / 2
            for j in places
        ]
        for i in places
    ]
