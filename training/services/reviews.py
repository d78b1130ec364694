"""Reviews of dataset versions by people: a random sample (MISSION C3(6)), or every example of an evaluation
set (F4).
"""

import heapq
import json
from collections.abc import Iterator
from typing import Any

from django.db import transaction
from django.db.models import F
from django.utils import timezone

from registry.choices import TokenScope
from registry.errors import Fault
from registry.models import DatasetVersion
from registry.services.actors import Actor
from registry.services.artifacts import get_file_entry, open_blob
from registry.services.audit import record_audit
from registry.services.datasets import DATA_FILE, record_review
from training.choices import ReviewState, ReviewVerdict
from training.engine.data.reviewing import review_order
from training.errors import ReviewerNeeded, TrainingConflict, TrainingInvalid, VerdictChanged
from training.models import ReviewItem, ReviewTask
from training.selectors.reviews import get_review_item, item_etag, review_summary

DEFAULT_NUM_EXAMPLES = 100
"""MISSION C3(6): a random 100 of the cleaned examples are looked at by a person."""

MAX_EXAMPLES = 2000
"""Nobody reads more in one review; sets for judging have 100-200 examples (MISSION F4)."""

MAX_NOTE_CHARACTERS = 2000
MAX_ANSWER_CHARACTERS = 200_000
_BATCH_SIZE = 200


def create_task(
    *,
    version: DatasetVersion,
    actor: Actor,
    seed: int = 0,
    num_examples: int | None = DEFAULT_NUM_EXAMPLES,
    reviewer: Any = None,
) -> ReviewTask:
    """Chooses examples of a dataset version for people to look at.

    Args:
        version: The dataset version.
        actor: Needs the scope `review`.
        seed: Another seed chooses other examples of the same version; the same seed the same ones.
        num_examples: How many; all when there are fewer, or when None is given.
        reviewer: The user who is asked to do it; None lets anybody.

    Raises:
        ScopeError: the actor may not review.
        TrainingInvalid: more examples than a review may have (code `review-invalid`).
    """
    actor.require(TokenScope.REVIEW)
    wanted = version.num_examples if num_examples is None else min(num_examples, version.num_examples)
    if not 1 <= wanted <= MAX_EXAMPLES:
        message = f"{wanted} examples; a review has 1 to {MAX_EXAMPLES}."
        fault = Fault(code="num-examples-invalid", message=message, where="/num_examples")
        raise TrainingInvalid("review-invalid", faults=[fault])
    chosen = choose_examples(version, seed=seed, num_examples=wanted)
    with transaction.atomic():
        task = ReviewTask.objects.create(
            dataset_version=version,
            seed=seed,
            num_examples=len(chosen),
            reviewer=reviewer,
            created_by=actor.user,
        )
        ReviewItem.objects.bulk_create(
            [
                ReviewItem(task=task, position=position, example_id=example_id, line=line)
                for position, (example_id, line) in enumerate(chosen, start=1)
            ],
            batch_size=_BATCH_SIZE,
        )
        after = {"version": str(version), "seed": seed, "num_examples": len(chosen)}
        record_audit(actor=actor, action="review.create", target=task, after=after)
    return task


def choose_examples(version: DatasetVersion, *, seed: int, num_examples: int) -> list[tuple[str, str]]:
    """A random sample without repeats, as (id, line) in random order.

    Each example gets the sha256 of seed, version and id as its place in the order, and the first ones are
    taken: every subset is as likely as any other, and nothing but these three decides.
    """
    digest = version.artifact_id
    return heapq.nsmallest(
        num_examples, iterate_lines(version), key=lambda example: review_order(seed, digest, example[0])
    )


def iterate_lines(version: DatasetVersion) -> Iterator[tuple[str, str]]:
    """Every line of a dataset version as (id, line without line end), in the file's order."""
    entry = get_file_entry(digest=version.artifact_id, path=DATA_FILE)
    with open_blob(entry.sha256) as file:
        for raw in file:
            if line := raw.decode("utf-8").strip("\r\n \t"):
                yield json.loads(line)["id"], line


def record_verdict(
    *,
    task: ReviewTask,
    position: int,
    verdict: str,
    expected_revision: int,
    actor: Actor,
    fixed_answer: str = "",
    note: str = "",
) -> ReviewItem:
    """Notes what a person says of one example.

    Args:
        task: An open review.
        position: Of the example, from 1.
        verdict: A `ReviewVerdict`; "" takes a verdict back.
        expected_revision: Of the item as the person saw it.
        actor: A person with the scope `review`.
        fixed_answer: The answer as it should be; for the verdict `fix` and only for it.
        note: For people.

    Raises:
        ScopeError: the actor may not review.
        ReviewerNeeded: there is no person behind the actor.
        TrainingNotFound: no such position.
        TrainingInvalid: an unknown verdict, or a fixed answer that is missing or too much (code
            `verdict-invalid`; every fault at once).
        VerdictChanged: the item has another revision by now.
        TrainingConflict: the review is closed.
    """
    actor.require(TokenScope.REVIEW)
    if actor.user is None:
        raise ReviewerNeeded("reviewer-needed")
    _require_sound(verdict, fixed_answer, note)
    with transaction.atomic():
        # The version's row orders verdicts, so that each count below sees the verdicts before it.
        version = DatasetVersion.objects.select_for_update().get(pk=task.dataset_version_id)
        locked = ReviewTask.objects.select_for_update().get(pk=task.pk)
        if locked.state != ReviewState.OPEN:
            raise TrainingConflict("review-closed")
        before = get_review_item(locked, position)
        if verdict == ReviewVerdict.FIX:
            _require_same_kind(before.line, fixed_answer)
        is_changed = locked.items.filter(position=position, revision=expected_revision).update(
            verdict=verdict,
            fixed_answer=fixed_answer,
            note=note,
            reviewer=actor.user if verdict else None,
            reviewed_at=timezone.now() if verdict else None,
            revision=F("revision") + 1,
        )
        if not is_changed:
            raise _verdict_changed(before)
        item = get_review_item(locked, position)
        record_audit(
            actor=actor,
            action="review.verdict",
            target=item,
            before={"verdict": before.verdict},
            after={"verdict": verdict, "review": str(task.pk), "example": item.example_id},
        )
        summary = review_summary(version)
        record_review(
            version=version,
            num_reviewed=summary.num_reviewed,
            num_bad=summary.num_bad,
            num_to_fix=summary.num_to_fix,
        )
    return item


def answer_of_line(line: str) -> str:
    """The answer that a reviewer of a line may fix: the assistant's last message, or the reference of a line
    that has none; "" when there is neither.
    """
    document = json.loads(line)
    last = document["messages"][-1]
    if last["role"] == "assistant":
        return str(last["content"])
    reference = document.get("reference")
    return reference if isinstance(reference, str) else ""


def _require_same_kind(line: str, fixed_answer: str) -> None:
    """A slip of the pen in an answer that is JSON would make a reference that no model can meet."""
    try:
        is_structured = isinstance(json.loads(answer_of_line(line)), dict | list)
    except ValueError:
        return
    if not is_structured:
        return
    try:
        json.loads(fixed_answer)
    except ValueError as error:
        message = f"The answer is JSON, the fixed one is not: {error}"
        fault = Fault(code="fixed-answer-not-json", message=message, where="/fixed_answer")
        raise TrainingInvalid("verdict-invalid", faults=[fault]) from error


def _verdict_changed(item: ReviewItem) -> VerdictChanged:
    reviewer = item.reviewer.get_username() if item.reviewer else "Somebody"
    return VerdictChanged(
        "review-item-changed",
        position=item.position,
        reviewer=reviewer,
        verdict=item.verdict or "taken back",
        etag=item_etag(item),
        revision=item.revision,
    )


def _require_sound(verdict: str, fixed_answer: str, note: str) -> None:
    faults = []
    if verdict not in ("", *ReviewVerdict.values):
        message = f"must be one of {', '.join(ReviewVerdict.values)}, or empty to take a verdict back."
        faults.append(Fault(code="verdict-unknown", message=message, where="/verdict"))
    if verdict == ReviewVerdict.FIX and not fixed_answer.strip():
        message = "The verdict fix needs the answer as it should be."
        faults.append(Fault(code="fixed-answer-missing", message=message, where="/fixed_answer"))
    if verdict != ReviewVerdict.FIX and fixed_answer:
        message = "Only the verdict fix has a fixed answer."
        faults.append(Fault(code="fixed-answer-unused", message=message, where="/fixed_answer"))
    for name, text, limit in (
        ("fixed_answer", fixed_answer, MAX_ANSWER_CHARACTERS),
        ("note", note, MAX_NOTE_CHARACTERS),
    ):
        if len(text) > limit:
            message = f"{len(text)} characters; at most {limit} are allowed."
            faults.append(Fault(code="text-too-long", message=message, where=f"/{name}"))
        if "\0" in text:
            message = "A NUL character cannot be stored."
            faults.append(Fault(code="unstorable-text", message=message, where=f"/{name}"))
    if faults:
        raise TrainingInvalid("verdict-invalid", faults=faults)
