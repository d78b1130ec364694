"""Channels over REST: ETags, history, rollback, manifest."""

from typing import Any

import pytest

from registry.models import AdapterVersion, Channel, Promotion
from registry.services.actors import SYSTEM
from registry.services.channels import promote_version
from tests.fixtures.registry import Caller, assert_problem, make_caller, make_shippable_version

pytestmark = pytest.mark.django_db
CHANNELS = "/api/v1/channels"


@pytest.fixture
def caller() -> Caller:
    caller = make_caller("admin", "promote", "pull")
    assert caller.client.post(CHANNELS, {"name": "staging"}, format="json").status_code == 201
    return caller


def promote(version: AdapterVersion) -> Channel:
    return promote_version(
        channel_name="staging",
        version=version,
        decision_id=None,
        verdict="passed",
        expected_revision=Channel.objects.get(name="staging").revision,
        reason="test",
        actor=SYSTEM,
    )


def roll_back(caller: Caller, etag: str | None, **body: Any) -> Any:
    headers = {} if etag is None else {"If-Match": etag}
    return caller.client.post(
        f"{CHANNELS}/staging/rollback", {"reason": "it broke"} | body, format="json", headers=headers
    )


def test_create(caller: Caller) -> None:
    again = caller.client.post(CHANNELS, {"name": "staging", "form": "merged"}, format="json")
    assert again.status_code == 200
    document = again.json()
    assert document["current"] is None and document["form"] == "merged"
    assert document["history_url"].endswith("/api/v1/channels/staging/history")
    answer = caller.client.post(CHANNELS, {"name": "staging", "form": "adapter"}, format="json")
    assert_problem(answer, 409, "channel-name-taken")
    assert [row["name"] for row in caller.client.get(CHANNELS).json()["results"]] == ["staging"]


def test_show_has_the_etag_that_a_change_needs(caller: Caller) -> None:
    version = make_shippable_version()
    promote(version)
    answer = caller.client.get(f"{CHANNELS}/staging")
    document = answer.json()
    assert answer["ETag"] == f'"{document["etag"]}"' == '"r1"'
    assert document["current"]["adapter"] == "tickets" and document["current"]["version"] == 1
    assert document["current"]["promoted_by"] is None and document["current"]["is_override"] is False


def test_rollback_goes_back_step_by_step(caller: Caller) -> None:
    versions = [make_shippable_version() for _ in range(3)]
    for version in versions:
        promote(version)
    first = roll_back(caller, '"r3"')
    assert first.status_code == 200, first.content
    assert first.json()["current"]["version"] == 2 and first["ETag"] == '"r4"'
    second = roll_back(caller, "r4")
    assert second.json()["current"]["version"] == 1
    assert_problem(roll_back(caller, '"r5"'), 409, "nothing-to-roll-back")
    # After a promotion on top of a rollback the way back leads to what was served in between.
    promote(make_shippable_version())
    assert roll_back(caller, "*").json()["current"]["version"] == 1
    kinds = [row["kind"] for row in caller.client.get(f"{CHANNELS}/staging/history").json()["results"]]
    assert kinds == ["rollback", "promote", "rollback", "rollback", "promote", "promote", "promote"]
    assert Promotion.objects.filter(kind="rollback", restores=None).count() == 0


def test_rollback_to_a_named_promotion(caller: Caller) -> None:
    for _ in range(3):
        promote(make_shippable_version())
    oldest = Promotion.objects.order_by("revision")[0]
    answer = roll_back(caller, "r3", to_promotion=oldest.pk)
    assert answer.json()["current"]["version"] == 1
    assert_problem(roll_back(caller, "r4", to_promotion=10_000), 404, "promotion-not-found")


def test_stale_and_missing_etags(caller: Caller) -> None:
    for _ in range(2):
        promote(make_shippable_version())
    assert_problem(roll_back(caller, None), 428, "precondition-required")
    for etag in ('"r1"', '"r3"', '"x"', '""', '"r02"', '"r-1"'):
        document = assert_problem(roll_back(caller, etag), 412, "channel-changed")
        assert document["etag"] == "r2"
    assert Channel.objects.get().revision == 2
    assert roll_back(caller, 'W/"x", "r2"').status_code == 200


def test_a_reason_is_needed(caller: Caller) -> None:
    for _ in range(2):
        promote(make_shippable_version())
    for reason in ("", "  ", None):
        assert_problem(roll_back(caller, "r2", reason=reason), 422, "validation-failed")


def test_rollback_of_an_adapter_out_of_scope(caller: Caller) -> None:
    for _ in range(2):
        promote(make_shippable_version("tickets"))
    limited = make_caller("promote", adapters=("others",))
    assert_problem(roll_back(limited, "r2"), 403, "adapter-out-of-scope")


def test_manifest(caller: Caller) -> None:
    assert_problem(caller.client.get(f"{CHANNELS}/staging/manifest"), 404, "channel-empty")
    version = make_shippable_version()
    promote(version)
    answer = caller.client.get(f"{CHANNELS}/staging/manifest")
    document = answer.json()
    assert document["artifact"] == version.merged_artifact_id and document["form"] == "merged"
    assert document["base_model"] == {"name": "tiny", "artifact": version.base_model.artifact_id}
    assert document["decision"] == {"id": None, "verdict": "passed"}
    assert [file["path"] for file in document["files"]] == ["config.json", "model.safetensors"]
    for file in document["files"]:
        download = caller.client.get(file["url"])
        assert download.status_code == 200 and download["ETag"] == f'"{file["sha256"]}"'
    fresh = caller.client.get(f"{CHANNELS}/staging/manifest", headers={"If-None-Match": answer["ETag"]})
    assert fresh.status_code == 304 and fresh.content == b""
    promote(make_shippable_version())
    changed = caller.client.get(f"{CHANNELS}/staging/manifest", headers={"If-None-Match": answer["ETag"]})
    assert changed.status_code == 200


def test_manifest_of_an_adapter_channel(caller: Caller) -> None:
    caller.client.post(CHANNELS, {"name": "lora", "form": "adapter"}, format="json")
    version = make_shippable_version()
    promote_version(
        channel_name="lora", version=version, decision_id=None, verdict="passed", expected_revision=0,
        reason="test", actor=SYSTEM,
    )  # fmt: skip
    document = caller.client.get(f"{CHANNELS}/lora/manifest").json()
    assert document["artifact"] == version.artifact_id
    limited = make_caller("pull", adapters=("others",))
    assert_problem(limited.client.get(f"{CHANNELS}/lora/manifest"), 403, "adapter-out-of-scope")


def test_unknown_channel_has_near_misses(caller: Caller) -> None:
    document = assert_problem(caller.client.get(f"{CHANNELS}/stagin"), 404, "channel-not-found")
    assert "Did you mean 'staging'?" in document["detail"]
