"""Real threads on a real database: numbers never collide, one of two changes wins (SQLite and PostgreSQL)."""

import threading
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from registry.errors import AssayError
from registry.models import (
    Adapter,
    AdapterVersion,
    Artifact,
    Channel,
    DatasetVersion,
    IdempotencyRecord,
    Promotion,
)
from registry.services.actors import SYSTEM
from registry.services.adapters import set_version_state, submit_version
from registry.services.channels import create_channel, promote_version
from registry.services.datasets import register_dataset_version
from registry.services.idempotency import OpenRequest, begin_request
from tests.fixtures.registry import (
    example,
    jsonl,
    make_base_model,
    make_shippable_version,
    make_version,
    store_files,
)

pytestmark = pytest.mark.django_db(transaction=True)
NUM_THREADS = 6


def run_together(*calls: Callable[[], Any]) -> list[Any]:
    """Runs the calls at the same time, each on a connection of its own; an AssayError is its result."""
    barrier = threading.Barrier(len(calls))
    results: list[Any] = [None] * len(calls)

    def work(index: int, call: Callable[[], Any]) -> None:
        barrier.wait(timeout=20)
        try:
            results[index] = call()
        except AssayError as error:
            results[index] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=work, args=(index, call)) for index, call in enumerate(calls)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    return results


def submit(digest: str) -> tuple[AdapterVersion, bool]:
    return submit_version(
        adapter_name="tickets", artifact_digest=digest, base_model_name="tiny", training_datasets=(),
        notes="", actor=SYSTEM,
    )  # fmt: skip


def test_version_numbers_never_collide() -> None:
    make_base_model()
    digests = [store_files({"a": f"{i}".encode()}, kind="adapter").digest for i in range(NUM_THREADS)]
    results = run_together(*[lambda d=d: submit(d) for d in digests])
    assert sorted(version.number for version, _ in results) == list(range(1, NUM_THREADS + 1))
    assert Adapter.objects.get().next_version_number == NUM_THREADS + 1


def test_the_same_bytes_at_once_are_one_version() -> None:
    make_base_model()
    digest = store_files({"a": b"x"}, kind="adapter").digest
    results = run_together(*[lambda: submit(digest)] * NUM_THREADS)
    assert {version.number for version, _ in results} == {1}
    assert sum(is_new for _, is_new in results) == 1
    assert Adapter.objects.get().next_version_number == 2


def test_dataset_versions_likewise() -> None:
    digests = [
        store_files({"data.jsonl": jsonl(example(f"{i % 3}"))}, kind="dataset").digest
        for i in range(NUM_THREADS)
    ]
    run_together(
        *[
            lambda d=d: register_dataset_version(name="t", role="train", artifact_digest=d, actor=SYSTEM)
            for d in digests
        ]
    )
    assert sorted(DatasetVersion.objects.values_list("number", flat=True)) == [1, 2, 3]


def test_the_same_artifact_at_once_is_one_row() -> None:
    results = run_together(*[lambda: store_files({"a": b"x", "b": b"y"}, kind="other")] * NUM_THREADS)
    assert len({artifact.digest for artifact in results}) == 1
    assert Artifact.objects.get().files.count() == 2


def test_one_of_two_promotions_wins() -> None:
    create_channel(name="staging", form="merged", actor=SYSTEM)
    versions = [make_shippable_version() for _ in range(NUM_THREADS)]
    results = run_together(
        *[
            lambda v=v: promote_version(
                channel_name="staging", version=v, decision_id=uuid.uuid4(), verdict="passed",
                expected_revision=0, reason="race", actor=SYSTEM,
            )
            for v in versions
        ]
    )  # fmt: skip
    winners = [result for result in results if isinstance(result, Channel)]
    losers = [result for result in results if isinstance(result, AssayError)]
    assert len(winners) == 1 and {error.code for error in losers} == {"channel-changed"}
    channel = Channel.objects.get()
    assert channel.revision == 1 and channel.current == Promotion.objects.get()


def test_one_of_two_changes_of_state_wins() -> None:
    version = make_version()
    copies = [AdapterVersion.objects.get(pk=version.pk) for _ in range(NUM_THREADS)]
    results = run_together(
        *[lambda c=c: set_version_state(version=c, to_state="checked", actor=SYSTEM) for c in copies]
    )
    assert sum(isinstance(result, AdapterVersion) for result in results) == 1
    assert {result.code for result in results if isinstance(result, AssayError)} == {"state-changed"}


def test_one_of_two_equal_requests_is_answered() -> None:
    results = run_together(
        *[lambda: begin_request(owner="u", key="k", request_sha256="a" * 64)] * NUM_THREADS
    )
    assert sum(isinstance(result, OpenRequest) for result in results) == 1
    assert {result.code for result in results if isinstance(result, AssayError)} == {"request-in-flight"}
    assert IdempotencyRecord.objects.count() == 1
