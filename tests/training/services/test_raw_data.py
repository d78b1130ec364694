"""Raw data: a name for stored files."""

import pytest

from registry.errors import ScopeError
from registry.models import AuditEvent
from registry.services.actors import SYSTEM
from tests.fixtures.preparations import make_raw
from tests.fixtures.registry import make_caller, store_files
from training.errors import TrainingInvalid, TrainingNotFound
from training.models import RawData
from training.selectors.raw_data import get_raw_data
from training.services.raw_data import create_raw_data

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("store")]


def test_the_same_bytes_are_the_same_row() -> None:
    artifact = store_files({"log.csv": b"a\n1\n"}, kind="raw_data")
    caller = make_caller("evaluate")
    row, is_new = create_raw_data(name="log", artifact_digest=artifact.digest, actor=caller.actor)
    assert is_new and row.created_by == caller.user
    again, is_new = create_raw_data(name="log", artifact_digest=artifact.digest, actor=SYSTEM)
    assert again == row and not is_new
    other, is_new = create_raw_data(name="other", artifact_digest=artifact.digest, actor=SYSTEM)
    assert other != row and is_new
    assert AuditEvent.objects.filter(action="raw_data.create").count() == 2


def test_all_faults_at_once() -> None:
    with pytest.raises(TrainingInvalid) as caught:
        create_raw_data(name="My log", artifact_digest="x", actor=SYSTEM)
    assert [(fault.where, fault.code) for fault in caught.value.faults] == [
        ("/name", "name-invalid"),
        ("/artifact", "artifact-not-found"),
    ]


def test_rights() -> None:
    with pytest.raises(ScopeError):
        create_raw_data(name="log", artifact_digest="x", actor=make_caller("review").actor)


def test_references() -> None:
    old = make_raw("log")
    new = make_raw("log", {"b.csv": b"b\n1\n"})
    RawData.objects.filter(pk=old.pk).update(created_at="2020-01-01T00:00:00Z")
    assert get_raw_data(str(old.pk)) == old
    assert get_raw_data("log") == new
    with pytest.raises(TrainingNotFound, match="Did you mean 'log'"):
        get_raw_data("lgo")
    for nothing in ("", "a b", "\0", "00000000-0000-0000-0000-000000000000", "x" * 5000):
        with pytest.raises(TrainingNotFound):
            get_raw_data(nothing)
