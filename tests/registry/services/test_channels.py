"""Promotion: verdicts, forms, compare-and-set, audit."""

import uuid
from typing import Any

import pytest

from registry.choices import TokenScope
from registry.errors import ConflictError, PreconditionFailed, ScopeError, ValidationFailed
from registry.models import AdapterVersion, AuditEvent, Channel, Promotion
from registry.services.actors import SYSTEM, Actor
from registry.services.channels import create_channel, promote_version, rollback_channel
from tests.fixtures.registry import make_shippable_version, make_version

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def channel() -> Channel:
    return create_channel(name="staging", form="merged", actor=SYSTEM)[0]


def promote(version: AdapterVersion, **changes: Any) -> Channel:
    arguments: dict[str, Any] = {
        "channel_name": "staging",
        "version": version,
        "decision_id": uuid.uuid4(),
        "verdict": "passed",
        "expected_revision": Channel.objects.get(name="staging").revision,
        "reason": "it passed",
        "actor": SYSTEM,
    }
    return promote_version(**arguments | changes)


def test_promotion_is_recorded() -> None:
    first, second = make_shippable_version(), make_shippable_version()
    promote(first)
    decision_id = uuid.uuid4()
    channel = promote(second, decision_id=decision_id)
    assert channel.revision == 2 and channel.current is not None
    row = channel.current
    assert (row.version, row.artifact_id, row.decision_id) == (second, second.merged_artifact_id, decision_id)
    assert row.previous is not None and row.previous.version == first and row.restores is None
    event = AuditEvent.objects.latest("id")
    assert (event.action, event.actor, event.reason) == ("channel.promote", "system", "it passed")
    assert event.before is not None and event.before["version"] == str(first)
    assert event.after is not None and event.after["version"] == str(second)


@pytest.mark.parametrize("verdict", ["rejected", "inconclusive", "", "failed"])
def test_only_passed_versions(verdict: str) -> None:
    version = make_shippable_version()
    with pytest.raises(ConflictError) as caught:
        promote(version, verdict=verdict)
    assert caught.value.code == "version-not-passed"
    assert Promotion.objects.count() == 0 and Channel.objects.get().revision == 0


def test_an_override_needs_a_verdict() -> None:
    version = make_shippable_version()
    version.state = "rejected"
    channel = promote(version, verdict="rejected", override_reason="two of us looked at it")
    assert channel.current is not None and channel.current.override_reason == "two of us looked at it"
    version.state = "checked"
    with pytest.raises(ConflictError):
        promote(version, verdict="", override_reason="why not")


def test_a_merged_channel_needs_a_merged_model() -> None:
    version = make_version()
    with pytest.raises(ConflictError) as caught:
        promote(version)
    assert caught.value.code == "merged-model-missing"


def test_stale_revision() -> None:
    promote(make_shippable_version())
    for revision in (0, 2, -1):
        with pytest.raises(PreconditionFailed) as caught:
            promote(make_shippable_version(), expected_revision=revision)
        assert caught.value.fields["etag"] == "r1"
    assert Promotion.objects.count() == 1


def test_rights_and_reason() -> None:
    version = make_shippable_version()
    reader = Actor(name="r", user=None, token=None, scopes=frozenset({"read"}), adapter_names=None)
    limited = Actor(
        name="l", user=None, token=None, scopes=frozenset({TokenScope.PROMOTE.value}),
        adapter_names=frozenset({"others"}),
    )  # fmt: skip
    for actor, code in ((reader, "scope-missing"), (limited, "adapter-out-of-scope")):
        with pytest.raises(ScopeError) as caught:
            promote(version, actor=actor)
        assert caught.value.code == code
    with pytest.raises(ValidationFailed):
        promote(version, reason=" ")


def test_rollback_brings_the_same_bytes_back() -> None:
    first, second = make_shippable_version(), make_shippable_version()
    promote(first)
    shipped = first.merged_artifact_id
    promote(second)
    # A later merge of the first version does not change what a rollback ships.
    AdapterVersion.objects.filter(pk=first.pk).update(merged_artifact=second.merged_artifact)
    channel = rollback_channel(channel_name="staging", expected_revision=2, reason="broke", actor=SYSTEM)
    assert channel.current is not None and channel.current.artifact_id == shipped
    assert channel.current.kind == "rollback" and channel.current.verdict == "passed"
    assert AuditEvent.objects.latest("id").action == "channel.rollback"


def test_nothing_to_roll_back() -> None:
    for _ in range(2):
        with pytest.raises(ConflictError) as caught:
            revision = Channel.objects.get().revision
            rollback_channel(channel_name="staging", expected_revision=revision, reason="x", actor=SYSTEM)
        assert caught.value.code == "nothing-to-roll-back"
        promote(make_shippable_version())
