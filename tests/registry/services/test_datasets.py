"""Dataset versions: what is known of their origin, and several of them at once."""

from typing import Any

import pytest
from django.db import transaction

from registry.errors import ConflictError
from registry.models import Dataset, DatasetVersion
from registry.services.actors import SYSTEM
from registry.services.datasets import (
    check_dataset_version,
    ensure_dataset,
    record_review,
    register_dataset_version,
    store_dataset_version,
)
from tests.fixtures.registry import example, jsonl, store_files

pytestmark = pytest.mark.django_db


def digest_of(*lines: Any) -> str:
    return store_files({"data.jsonl": jsonl(*lines)}, kind="dataset").digest


def test_the_card_says_where_the_bytes_come_from() -> None:
    digest = digest_of(example("a", tags={"lang": "en"}))
    card = {"preparation": "p", "tags": {"invented": {"x": 9}}}
    version, is_new = register_dataset_version(
        name="tickets", role="train", artifact_digest=digest, actor=SYSTEM, card=card
    )
    # What the registry counts itself has precedence.
    assert is_new and version.card == {"preparation": "p", "tags": {"lang": {"en": 1}}}
    again, is_new = register_dataset_version(
        name="tickets", role="train", artifact_digest=digest, actor=SYSTEM, card={"preparation": "q"}
    )
    assert not is_new and again.card["preparation"] == "p"


def test_checking_writes_nothing() -> None:
    checked = check_dataset_version(name="tickets", role="train", artifact_digest=digest_of(example()))
    assert (checked.summary.num_examples, checked.role) == (1, "train")
    assert not Dataset.objects.exists()


def test_several_versions_or_none() -> None:
    checked = [
        check_dataset_version(name=name, role=role, artifact_digest=digest_of(example(name)))
        for name, role in (("tickets", "train"), ("tickets-holdout", "holdout"))
    ]
    ensure_dataset(name="tickets-holdout", role="ood", actor=SYSTEM)
    with pytest.raises(ConflictError), transaction.atomic():
        for item in checked:
            store_dataset_version(checked=item, actor=SYSTEM)
    assert not DatasetVersion.objects.exists()


def test_reviews_are_counted_on_the_version() -> None:
    version, _ = register_dataset_version(
        name="tickets", role="train", artifact_digest=digest_of(example()), actor=SYSTEM
    )
    record_review(version=version, num_reviewed=3, num_bad=1, num_to_fix=2)
    version.refresh_from_db()
    assert (version.num_reviewed, version.num_bad, version.num_to_fix) == (3, 1, 2)
