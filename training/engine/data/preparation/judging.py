"""Looking at finished sets: cards, findings, overlap. Changes nothing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from registry.artifacts.findings import Severity
from training.engine.data.card.contents import ContentsCounter
from training.engine.data.checks.check import MAX_LISTED_IDS, Check, DataFinding
from training.engine.data.cleaning.step import TokenCounter
from training.engine.data.example_files import WrittenFile, iterate_examples
from training.engine.data.examples import Example
from training.engine.data.jsonl import list_jsonl_files, read_examples
from training.engine.data.leakage import LeakageReport, find_leakage
from training.engine.data.recipe import Recipe

TRAIN = "train"
SOURCE = "raw"
"""The ``set`` of findings on the rows as they came."""
ANSWER_IN_INPUT = "answer-in-input"
_ORDER = (Severity.ERROR, Severity.WARNING, Severity.INFO)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedSets:
    """What was seen.

    Attributes:
        cards: The card of each set by its role.
        findings: Of all sets, each with its ``set``; the weightiest first.
        leakage: Overlap between all sets, pair by pair, and answers that stand elsewhere.
    """

    cards: Mapping[str, Mapping[str, Any]]
    findings: list[dict[str, Any]]
    leakage: dict[str, Any]


def judge_source_order(read: WrittenFile, recipe: Recipe) -> list[DataFinding]:
    """Make the checks that need the rows as they came, before anything was dropped or shuffled."""
    checks = _build_checks(recipe, in_source_order=True)
    if checks:
        for example in iterate_examples(read.path):
            _add_to(checks, example)
    return [finding for check in checks for finding in check.findings()]


def judge_sets(
    sets: Mapping[str, WrittenFile],
    *,
    others: Mapping[str, Path],
    recipe: Recipe,
    count_tokens: TokenCounter | None,
    of_source: Sequence[DataFinding] = (),
) -> JudgedSets:
    """Look at sets.

    Args:
        sets: Prepared sets by role.
        others: Ready sets by name that they are compared with.
        recipe: Says which checks are made.
        count_tokens: For lengths; None leaves them out.
        of_source: Findings of ``judge_source_order``.
    """
    cards: dict[str, Mapping[str, Any]] = {}
    findings: list[tuple[str, DataFinding]] = [(SOURCE, finding) for finding in of_source]
    for role, written in sets.items():
        cards[role], found = _look_at(written, recipe, count_tokens)
        findings += [(role, finding) for finding in found]
    leakage = find_leakage_among(
        {role: iterate_examples(written.path) for role, written in sets.items()},
        {name: iterate_ready(path) for name, path in others.items() if name not in sets},
        threshold=recipe.leakage_threshold,
    )
    findings += list(_overlap_findings(leakage))
    # Answers that stand in their own input are the business of a check, which leaves general data out.
    findings += [("", item) for item in leakage.answers.findings() if item.code != ANSWER_IN_INPUT]
    findings.sort(key=lambda item: _ORDER.index(item[1].severity))
    return JudgedSets(
        cards=cards,
        findings=[{**finding.to_json(), "set": name} for name, finding in findings],
        leakage=leakage.to_json(),
    )


def find_leakage_among(
    sets: Mapping[str, Iterable[Example]], others: Mapping[str, Iterable[Example]], *, threshold: float
) -> LeakageReport:
    """Compare all sets with each other; the one called ``train`` is the training data, if there is one."""
    named = {**sets, **others}
    training = named.pop(TRAIN, None)
    return find_leakage(training, named, threshold=threshold)


def iterate_ready(path: Path) -> Iterator[Example]:
    """Read a ready set: a JSONL file, or a folder of them.

    Raises:
        DataInvalid: A file cannot be read.
    """
    for file in list_jsonl_files(path):
        yield from read_examples(file, needs_answer=False)


def _look_at(
    written: WrittenFile, recipe: Recipe, count_tokens: TokenCounter | None
) -> tuple[Mapping[str, Any], list[DataFinding]]:
    contents = ContentsCounter(count_tokens)
    checks = _build_checks(recipe, in_source_order=False)
    for example in iterate_examples(written.path):
        contents.add(example)
        _add_to(checks, example)
    return contents.to_json(), [finding for check in checks for finding in check.findings()]


def _build_checks(recipe: Recipe, *, in_source_order: bool) -> list[Check]:
    return [
        request.kind.build(request.parameters)
        for request in recipe.checks
        if request.kind.needs_source_order is in_source_order
    ]


def _add_to(checks: Sequence[Check], example: Example) -> None:
    # General data are of many tasks: what holds within one task is not to be asked of them.
    if not example.is_general:
        for check in checks:
            check.add(example)


def _overlap_findings(leakage: LeakageReport) -> Iterator[tuple[str, DataFinding]]:
    for overlap in leakage.matrix.overlaps:
        num = overlap.num_exact + overlap.num_near
        if not num:
            continue
        message = (
            f"{overlap.num_left} examples of {overlap.left} ask the same as {overlap.num_right} of "
            f"{overlap.right}: {overlap.num_exact} exact and {overlap.num_near} near pairs."
        )
        yield (
            overlap.left,
            DataFinding(
                code="sets-overlap",
                severity=Severity.ERROR,
                message=message,
                where=overlap.right,
                remedy=f"Take these examples out of {overlap.left}; a score on seen examples says nothing.",
                num_examples=overlap.num_left,
                example_ids=tuple(dict.fromkeys(pair.left_id for pair in overlap.pairs))[:MAX_LISTED_IDS],
                source="MISSION C6",
            ),
        )
