"""A person's look at a random selection of examples (MISSION C3(6)), as values and as a file."""

import hashlib
import heapq
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from training.engine.data.examples import Example
from training.engine.errors import DataInvalid

DEFAULT_NUM_REVIEWED: Final = 100
VERDICTS: Final = ("good", "bad", "fix")
REVIEW_SCHEMA_VERSION: Final = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewVerdict:
    """What a person said of one example.

    Attributes:
        verdict: good, bad or fix.
        fixed_answer: The answer as it should be; None unless the verdict is fix.
    """

    verdict: str
    fixed_answer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """The state of a review of one file.

    Attributes:
        data_sha256: Of the reviewed file; verdicts hold for these bytes only.
        seed: Of the selection.
        example_ids: The selection, in the order of looking.
        reviewer: Name of the person.
        verdicts: By example id, those given so far.
    """

    data_sha256: str
    seed: int
    example_ids: tuple[str, ...]
    reviewer: str
    verdicts: Mapping[str, ReviewVerdict] = field(default_factory=dict)

    def with_verdict(self, example_id: str, verdict: ReviewVerdict) -> "Review":
        """Return the review with one verdict more, or another one."""
        return Review(
            data_sha256=self.data_sha256,
            seed=self.seed,
            example_ids=self.example_ids,
            reviewer=self.reviewer,
            verdicts={**self.verdicts, example_id: verdict},
        )

    @property
    def open_ids(self) -> tuple[str, ...]:
        """Selected examples without a verdict."""
        return tuple(name for name in self.example_ids if name not in self.verdicts)

    def count(self) -> dict[str, int]:
        """Return how many verdicts there are of each kind."""
        counts = Counter(item.verdict for item in self.verdicts.values())
        return {name: counts[name] for name in VERDICTS}


def review_order(seed: int, digest: str, example_id: str) -> bytes:
    """Return an example's place in the random order of a review.

    It depends on seed, data and id alone, so every subset is as likely as any other and nobody chooses.
    """
    return hashlib.sha256(f"{seed}:{digest}:{example_id}".encode()).digest()


def choose_for_review(
    example_ids: Iterable[str], *, seed: int, digest: str, num_examples: int = DEFAULT_NUM_REVIEWED
) -> tuple[str, ...]:
    """Return a random selection without repeats, in random order; all ids when there are fewer."""
    return tuple(
        heapq.nsmallest(num_examples, example_ids, key=lambda name: review_order(seed, digest, name))
    )


def apply_review(
    examples: Iterable[Example], verdicts: Mapping[str, ReviewVerdict], *, reviewer: str, confirms: bool
) -> Iterator[Example]:
    """Yield the examples as the person left them: bad ones are gone, fixed ones have the person's answer.

    Args:
        examples: The reviewed data.
        verdicts: By example id.
        reviewer: Name of the person, for ``confirmed_by``.
        confirms: Whether the person's look confirms references (MISSION F4): good and fixed examples get
            ``confirmed_by``. A fixed answer is a person's in any case.
    """
    for example in examples:
        verdict = verdicts.get(example.example_id)
        if verdict is None:
            yield example
            continue
        if verdict.verdict == "bad":
            continue
        marks: dict[str, Any] = {"confirmed_by": reviewer} if confirms else {}
        if verdict.verdict == "fix" and verdict.fixed_answer is not None:
            example = example.with_answer(verdict.fixed_answer)
            marks["reference_source"] = "person"
        yield example.with_fields(**marks) if marks else example


def write_review(path: Path, review: Review) -> None:
    """Write a review whole or not at all."""
    document = {
        "schema_version": REVIEW_SCHEMA_VERSION,
        "data_sha256": review.data_sha256,
        "seed": review.seed,
        "reviewer": review.reviewer,
        "example_ids": list(review.example_ids),
        "verdicts": {
            name: {"verdict": item.verdict, "fixed_answer": item.fixed_answer}
            for name, item in review.verdicts.items()
        },
    }
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(path)


def read_review(path: Path) -> Review:
    """Read what ``write_review`` wrote.

    Raises:
        DataInvalid: ``review-unreadable``.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        verdicts = {
            str(name): ReviewVerdict(verdict=item["verdict"], fixed_answer=item["fixed_answer"])
            for name, item in document["verdicts"].items()
        }
        if document["schema_version"] != REVIEW_SCHEMA_VERSION:
            raise ValueError(f"schema_version {document['schema_version']} is not known")
        if unknown := {item.verdict for item in verdicts.values()} - set(VERDICTS):
            raise ValueError(f"unknown verdicts {sorted(unknown)}")
        return Review(
            data_sha256=str(document["data_sha256"]),
            seed=int(document["seed"]),
            example_ids=tuple(map(str, document["example_ids"])),
            reviewer=str(document["reviewer"]),
            verdicts=verdicts,
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise DataInvalid("review-unreadable", f"{path} is no review file: {error}") from error
