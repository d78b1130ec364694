"""Adapter versions: numbers, repeats, and every illegal change of state from the table."""

import itertools

import pytest

from registry.choices import VERSION_TRANSITIONS, TokenScope, VersionState
from registry.errors import AssayError, IllegalTransition, NotFoundError, ScopeError, ValidationFailed
from registry.models import Adapter, AdapterVersion, AuditEvent
from registry.services.actors import SYSTEM, Actor
from registry.services.adapters import set_version_state, submit_version
from registry.services.datasets import register_dataset_version
from tests.fixtures.registry import example, jsonl, make_base_model, make_version, store_files

pytestmark = pytest.mark.django_db


def submitter(*adapters: str) -> Actor:
    limit = frozenset(adapters) or None
    scopes = frozenset({TokenScope.SUBMIT.value})
    return Actor(name="ci", user=None, token=None, scopes=scopes, adapter_names=limit)


def submit(
    digest: str,
    *,
    name: str = "tickets",
    base: str = "tiny",
    actor: Actor = SYSTEM,
    data: tuple[str, ...] = (),
) -> tuple[AdapterVersion, bool]:
    return submit_version(
        adapter_name=name, artifact_digest=digest, base_model_name=base, training_datasets=data, notes="n",
        actor=actor,
    )  # fmt: skip


def test_numbers_count_up_for_each_adapter() -> None:
    make_base_model()
    digests = [store_files({"a": f"{i}".encode()}, kind="adapter").digest for i in range(3)]
    assert [submit(digest)[0].number for digest in digests] == [1, 2, 3]
    assert submit(digests[0], name="other")[0].number == 1
    assert Adapter.objects.get(name="tickets").next_version_number == 4


def test_the_same_bytes_are_the_same_version() -> None:
    version = make_version(content=b"x")
    same, is_new = submit(version.artifact_id)
    assert (same.pk, is_new) == (version.pk, False)
    make_base_model("other")
    different, is_new = submit(version.artifact_id, base="other")
    assert is_new and different.number == 2
    assert AuditEvent.objects.filter(action="version.submit").count() == 2


def test_training_datasets_are_resolved_with_every_fault() -> None:
    data = store_files({"data.jsonl": jsonl(example())}, kind="dataset")
    register_dataset_version(name="train", role="train", artifact_digest=data.digest, actor=SYSTEM)
    digest = make_version().artifact_id
    make_base_model("other")
    version, _ = submit(digest, base="other", data=("train@1", "train@1"))
    assert [str(item) for item in version.training_datasets.all()] == ["train@1"]
    with pytest.raises(ValidationFailed) as caught:
        submit(digest, base="tiny", data=("train@9", "B@d@", "train@1"))
    places = {(fault.code, fault.where) for fault in caught.value.faults}
    assert places == {
        ("dataset-version-not-found", "/training_dataset/0"),
        ("reference-invalid", "/training_dataset/1"),
    }


def test_what_is_not_there_or_not_allowed() -> None:
    digest = make_version().artifact_id
    with pytest.raises(NotFoundError, match="no artifact"):
        submit("a" * 64)
    with pytest.raises(NotFoundError, match="Did you mean 'tiny'"):
        submit(digest, base="tinny")
    with pytest.raises(ValidationFailed):
        submit(digest, name="Bad Name")
    with pytest.raises(ScopeError) as caught:
        submit(digest, actor=submitter("others"))
    assert caught.value.code == "adapter-out-of-scope"
    with pytest.raises(ScopeError):
        submit(digest, actor=Actor(name="x", user=None, token=None, scopes=frozenset(), adapter_names=None))
    assert submit(digest, actor=submitter("tickets"))[1] is False


def test_every_change_of_state_is_as_the_table_says() -> None:
    version = make_version()
    for from_state, to_state in itertools.product(VersionState.values, repeat=2):
        AdapterVersion.objects.update(state=from_state)
        version.refresh_from_db()
        num_events = AuditEvent.objects.count()
        if to_state in VERSION_TRANSITIONS[from_state]:
            assert set_version_state(version=version, to_state=to_state, actor=SYSTEM).state == to_state
            event = AuditEvent.objects.latest("id")
            assert (event.before, event.after) == ({"state": from_state}, {"state": to_state})
        else:
            with pytest.raises(IllegalTransition) as caught:
                set_version_state(version=version, to_state=to_state, actor=SYSTEM)
            assert caught.value.code == "illegal-transition" and caught.value.status == 409
            assert AdapterVersion.objects.get().state == from_state
            assert AuditEvent.objects.count() == num_events


def test_the_first_of_two_changes_wins() -> None:
    version = make_version()
    stale = AdapterVersion.objects.get()
    set_version_state(version=version, to_state="checked", actor=SYSTEM, findings=[{"code": "x"}])
    with pytest.raises(IllegalTransition) as caught:
        set_version_state(version=stale, to_state="invalid", actor=SYSTEM)
    assert caught.value.code == "state-changed"
    assert AdapterVersion.objects.get().findings == [{"code": "x"}]


def test_only_some_columns_go_with_the_state() -> None:
    with pytest.raises(AssayError, match="number"):
        set_version_state(version=make_version(), to_state="checked", actor=SYSTEM, number=7)
