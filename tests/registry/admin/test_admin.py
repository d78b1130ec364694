"""Admin pages: lists and rows open, history cannot be changed, tokens are shown once, channels roll back."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from registry.models import (
    Adapter,
    AdapterVersion,
    ApiToken,
    Artifact,
    AuditEvent,
    BaseModel,
    Blob,
    Channel,
    Dataset,
    DatasetVersion,
    IdempotencyRecord,
    Promotion,
    Upload,
)
from registry.services.actors import SYSTEM
from registry.services.channels import create_channel, promote_version
from registry.services.datasets import register_dataset_version
from registry.services.tokens import authenticate_token
from registry.services.uploads import create_upload
from tests.fixtures.registry import example, jsonl, make_caller, make_shippable_version, store_files

pytestmark = pytest.mark.django_db
MODELS: list[Any] = [
    Adapter,
    AdapterVersion,
    ApiToken,
    Artifact,
    AuditEvent,
    BaseModel,
    Blob,
    Channel,
    Dataset,
    DatasetVersion,
    IdempotencyRecord,
    Promotion,
    Upload,
]
ADDABLE = {ApiToken, Channel}
CHANGEABLE = {Adapter}
ADMIN_ONLY = {ApiToken, AuditEvent, Blob, IdempotencyRecord}


@pytest.fixture
def root() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


def promote(*, revision: int) -> None:
    promote_version(
        channel_name="staging", version=make_shippable_version(), decision_id=None, verdict="passed",
        expected_revision=revision, reason="<b>bold</b>", actor=SYSTEM,
    )  # fmt: skip


@pytest.fixture
def rows() -> dict[Any, Any]:
    caller = make_caller("submit")
    create_channel(name="staging", form="merged", actor=SYSTEM)
    for revision in range(2):
        promote(revision=revision)
    data = store_files({"data.jsonl": jsonl(example())}, kind="dataset")
    register_dataset_version(name="train", role="train", artifact_digest=data.digest, actor=SYSTEM)
    create_upload(
        kind="adapter", files=[{"path": "a", "size_bytes": 1, "sha256": "a" * 64}], actor=caller.actor
    )
    IdempotencyRecord.objects.create(owner="user:1", key="k", request_sha256="a" * 64)
    return {model: model.objects.first() for model in MODELS}


def page(model: Any, kind: str, *arguments: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{kind}", args=arguments)


@pytest.mark.parametrize("model", MODELS)
def test_lists_and_rows_open(root: Client, rows: dict[Any, Any], model: Any) -> None:
    assert root.get(page(model, "changelist")).status_code == 200
    assert root.get(page(model, "changelist"), {"q": "x"}).status_code == 200
    answer = root.get(page(model, "change", rows[model].pk))
    assert answer.status_code == 200
    assert b"<b>bold</b>" not in answer.content


@pytest.mark.parametrize("model", MODELS)
def test_history_cannot_be_changed(root: Client, rows: dict[Any, Any], model: Any) -> None:
    before = list(model.objects.values())
    assert root.get(page(model, "add")).status_code == (200 if model in ADDABLE else 403)
    assert root.post(page(model, "delete", rows[model].pk), {"post": "yes"}).status_code == 403
    if model not in CHANGEABLE:
        assert root.post(page(model, "change", rows[model].pk), {"name": "x"}).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [str(rows[model].pk)], "post": "yes"}
    root.post(page(model, "changelist"), chosen)
    assert list(model.objects.values()) == before


@pytest.mark.parametrize("model", MODELS)
def test_who_sees_what(rows: dict[Any, Any], model: Any) -> None:
    reader, stranger = Client(), Client()
    reader.force_login(User.objects.create_user("reader", is_staff=True))
    stranger.force_login(User.objects.create_user("stranger"))
    expected = 403 if model in ADMIN_ONLY else 200
    assert reader.get(page(model, "changelist")).status_code == expected
    assert stranger.get(page(model, "changelist")).status_code == 302


def test_every_model_has_a_page() -> None:
    registered = {model for model in admin.site._registry if model._meta.app_label == "registry"}
    assert set(MODELS) <= registered


def test_adapter_description_may_be_written(root: Client, rows: dict[Any, Any]) -> None:
    form = {"description": "for people", "versions-TOTAL_FORMS": 0, "versions-INITIAL_FORMS": 0}
    assert root.post(page(Adapter, "change", rows[Adapter].pk), form).status_code == 302
    assert Adapter.objects.get().description == "for people"


def test_a_new_token_is_shown_once(root: Client) -> None:
    ann = User.objects.create_user("ann")
    form = {
        "name": "ci",
        "user": ann.pk,
        "scopes": ["read", "submit"],
        "expires_at_0": "",
        "expires_at_1": "",
    }
    answer = root.post(page(ApiToken, "add"), form, follow=True)
    assert answer.status_code == 200
    (told,) = [str(message) for message in answer.context["messages"] if "assay_" in str(message)]
    token = authenticate_token(told.split()[-1])
    assert (token.name, token.scopes, token.user) == ("ci", ["read", "submit"], ann)
    secret = told.split()[-1].encode()
    for url in (page(ApiToken, "changelist"), page(ApiToken, "change", token.pk)):
        assert secret not in root.get(url).content
        assert token.secret_sha256.encode() not in root.get(url).content


def test_a_token_form_tells_its_faults(root: Client) -> None:
    form = {"name": "", "scopes": ["nonsense"], "expires_at_0": "2001-01-01", "expires_at_1": "00:00:00"}
    answer = root.post(page(ApiToken, "add"), form)
    assert answer.status_code == 200 and ApiToken.objects.count() == 0
    assert {"name", "user", "scopes", "expires_at"} <= set(answer.context["adminform"].form.errors)


def test_tokens_are_revoked_from_the_list(root: Client) -> None:
    make_caller("read")
    token = ApiToken.objects.get()
    chosen = {"action": "revoke_tokens", "_selected_action": [token.pk]}
    assert root.post(page(ApiToken, "changelist"), chosen).status_code == 302
    token.refresh_from_db()
    assert token.revoked_at is not None
    assert AuditEvent.objects.filter(action="token.revoke", actor="root").exists()


def test_a_channel_is_added_by_the_service(root: Client) -> None:
    answer = root.post(page(Channel, "add"), {"name": "production", "form": "adapter"})
    assert answer.status_code == 302
    assert Channel.objects.get().form == "adapter"
    assert AuditEvent.objects.filter(action="channel.create", actor="root").exists()
    answer = root.post(page(Channel, "add"), {"name": "production", "form": "adapter"})
    assert answer.status_code == 200 and Channel.objects.count() == 1


def rollback_url(channel: Channel) -> str:
    return f"/admin/registry/channel/{channel.pk}/rollback/"


def promoter() -> Client:
    client = Client()
    user = User.objects.create_user("pro", is_staff=True)
    user.groups.set([Group.objects.get_or_create(name="promoters")[0]])
    client.force_login(user)
    return client


def test_rollback_with_a_reason(rows: dict[Any, Any]) -> None:
    client, channel = promoter(), rows[Channel]
    seen = client.get(rollback_url(channel))
    assert seen.status_code == 200
    initial = seen.context["form"].initial
    assert initial["revision"] == 2 and Channel.objects.get().revision == 2
    without = client.post(rollback_url(channel), initial)
    assert without.status_code == 200 and "reason" in without.context["form"].errors
    done = client.post(rollback_url(channel), initial | {"reason": "it broke"})
    assert done.status_code == 302
    channel = Channel.objects.get()
    assert channel.revision == 3 and channel.current is not None and channel.current.version.number == 1
    assert channel.current.reason == "it broke"
    # The page was open while somebody else changed the channel.
    promote(revision=3)
    stale = client.post(rollback_url(channel), initial | {"reason": "again"})
    assert stale.status_code == 200 and Channel.objects.get().revision == 4
    assert "changed meanwhile" in stale.content.decode()


def test_rollback_needs_the_right_and_a_history(rows: dict[Any, Any]) -> None:
    reader = Client()
    reader.force_login(User.objects.create_user("reader", is_staff=True))
    assert reader.get(rollback_url(rows[Channel])).status_code == 403
    assert "Roll back" not in reader.get(page(Channel, "change", rows[Channel].pk)).content.decode()
    empty, _ = create_channel(name="empty", form="merged", actor=SYSTEM)
    client = promoter()
    assert client.get(rollback_url(empty)).status_code == 302
    assert client.get("/admin/registry/channel/999/rollback/").status_code == 404
