"""The end of a review: its verdicts become a new dataset version."""

import dataclasses
import json
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone

from registry.artifacts.stores.base import PutMode
from registry.choices import EVALUATION_ROLES, ArtifactKind, DatasetRole, TokenScope
from registry.models import DatasetVersion
from registry.services.actors import Actor
from registry.services.artifacts import ingest_folder
from registry.services.audit import record_audit
from registry.services.datasets import DATA_FILE, CheckedVersion, check_dataset_version, store_dataset_version
from registry.services.jobs.records import storable_json
from training.choices import ReviewState, ReviewVerdict
from training.engine.data.card.contents import ContentsCounter
from training.engine.data.example_files import iterate_examples
from training.errors import TrainingConflict
from training.models import ReviewItem, ReviewTask
from training.selectors.reviews import get_review, list_review_items
from training.services.reviews import iterate_lines

LINEAGE_KEYS = ("preparation", "raw", "recipe_digest", "code_version")
"""Keys of a card that stay true for a version made out of another one."""


def close_task(
    *, task: ReviewTask, actor: Actor, apply_fixes: bool = True, allow_open: bool = False
) -> ReviewTask:
    """Ends a review. Nothing of it can be changed afterwards.

    Args:
        task: The review.
        actor: Needs the scope `review`; the new version is made in its name.
        apply_fixes: Whether its verdicts become a new dataset version: bad examples are left out, fixed
            answers take the place of the old ones, and in an evaluation set good and fixed examples are
            confirmed by their reviewer. A review that changes nothing results in the version that it is of.
        allow_open: Whether examples may be without verdict; they stay as they are.

    Raises:
        ScopeError: the actor may not review.
        TrainingConflict: it is closed already (`review-closed`), not finished (`review-incomplete`), or a
            verdict was given at the same time (`review-changed`).
        ValidationFailed: what would be left is no valid dataset, for instance because every example is bad.
    """
    actor.require(TokenScope.REVIEW)
    if task.state != ReviewState.OPEN:
        raise TrainingConflict("review-closed")
    items = list(list_review_items(task))
    num_open = sum(not item.verdict for item in items)
    if num_open and not allow_open:
        raise TrainingConflict("review-incomplete", num_open=num_open, num_examples=len(items))
    # Reading and checking every line takes long, so it is done before anything is locked.
    checked = _check_reviewed(task, items, actor) if apply_fixes else None
    with transaction.atomic():
        locked = ReviewTask.objects.select_for_update().get(pk=task.pk)
        if locked.state != ReviewState.OPEN:
            raise TrainingConflict("review-closed")
        if _revisions(list(list_review_items(locked))) != _revisions(items):
            raise TrainingConflict("review-changed")
        if checked is not None:
            # The right to review includes the right to what a review results in.
            scopes = actor.scopes | {TokenScope.SUBMIT}
            writer = dataclasses.replace(actor, scopes=scopes)
            locked.result, _ = store_dataset_version(checked=checked, actor=writer)
        elif apply_fixes:
            locked.result = task.dataset_version
        locked.state, locked.closed_at = ReviewState.CLOSED, timezone.now()
        locked.save(update_fields=["state", "closed_at", "result"])
        record_audit(
            actor=actor,
            action="review.close",
            target=locked,
            before={"state": ReviewState.OPEN.value},
            after={
                "state": ReviewState.CLOSED.value,
                "result": None if locked.result is None else str(locked.result),
            },
        )
    return get_review(task.pk)


def _check_reviewed(task: ReviewTask, items: Sequence[ReviewItem], actor: Actor) -> CheckedVersion | None:
    """Writes the reviewed lines into the store and checks them; None when the review changes nothing."""
    version = task.dataset_version
    changes = {item.example_id: _reviewed_line(item, version.dataset.role) for item in items}
    if all(changes[item.example_id] == item.line for item in items):
        return None
    root = Path(settings.WORK_ROOT)
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="review-", dir=root) as name:
        folder = Path(name)
        with (folder / DATA_FILE).open("w", encoding="utf-8", newline="") as file:
            file.writelines(f"{line}\n" for line in _reviewed_lines(version, changes))
        contents = _count_contents(folder / DATA_FILE)
        artifact = ingest_folder(folder=folder, kind=ArtifactKind.DATASET, actor=actor, mode=PutMode.MOVE)
    return check_dataset_version(
        name=version.dataset.name,
        role=version.dataset.role,
        artifact_digest=artifact.digest,
        card=_card(task, items) | contents,
    )


def _count_contents(path: Path) -> dict[str, Any]:
    """The card's numbers for the lines as they are now; none in tokens, which would need a base model."""
    counter = ContentsCounter(None)
    for example in iterate_examples(path):
        counter.add(example)
    contents: dict[str, Any] = storable_json(counter.to_json())
    return contents


def _reviewed_lines(version: DatasetVersion, changes: Mapping[str, str | None]) -> Iterator[str]:
    for example_id, line in iterate_lines(version):
        changed = changes.get(example_id, line)
        if changed is not None:
            yield changed


def _reviewed_line(item: ReviewItem, role: str) -> str | None:
    """The line after the review; None when it is left out."""
    is_confirmed = role in EVALUATION_ROLES
    if item.verdict == ReviewVerdict.BAD:
        return None
    if item.verdict == ReviewVerdict.FIX:
        document = _with_answer(json.loads(item.line), item.fixed_answer, role)
        document["reference_source"] = "person"
    elif item.verdict == ReviewVerdict.GOOD and is_confirmed:
        document = json.loads(item.line)
    else:
        return item.line
    if is_confirmed and item.reviewer is not None:
        document["confirmed_by"] = item.reviewer.get_username()
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _with_answer(document: dict[str, Any], answer: str, role: str) -> dict[str, Any]:
    """The document with another reference. The line of a regression set ends with the user's message and
    keeps its rule of scoring.
    """
    messages = document["messages"]
    if messages[-1]["role"] == "assistant":
        messages[-1]["content"] = answer
    elif role == DatasetRole.REGRESSION:
        document["reference"] = answer
    else:
        messages.append({"role": "assistant", "content": answer})
    return document


def _card(task: ReviewTask, items: Sequence[ReviewItem]) -> dict[str, Any]:
    verdicts = Counter(item.verdict for item in items)
    version = task.dataset_version
    return {
        **{key: version.card[key] for key in LINEAGE_KEYS if key in version.card},
        "review": {
            "id": str(task.pk),
            "from": str(version),
            "from_artifact": version.artifact_id,
            "num_examples": len(items),
            "num_good": verdicts[ReviewVerdict.GOOD],
            "num_bad": verdicts[ReviewVerdict.BAD],
            "num_fixed": verdicts[ReviewVerdict.FIX],
            "num_open": verdicts[""],
            "reviewers": sorted({item.reviewer.get_username() for item in items if item.reviewer}),
        },
    }


def _revisions(items: Sequence[ReviewItem]) -> list[tuple[int, int]]:
    return [(item.position, item.revision) for item in items]
