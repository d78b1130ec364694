"""Tokens as a CI uses them: accepted, refused with a reason, never stored in clear."""

import hashlib
from datetime import timedelta

import pytest
from django.contrib.auth.models import Group, User
from django.utils import timezone
from rest_framework.test import APIClient

from registry.models import ApiToken, AuditEvent
from registry.services.actors import SYSTEM
from registry.services.tokens import create_token, revoke_token
from tests.fixtures.registry import Caller, assert_problem, make_caller

pytestmark = pytest.mark.django_db
WHOAMI = "/api/v1/whoami"


def client_with(header: str) -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=header)
    return client


@pytest.fixture
def caller() -> Caller:
    return make_caller("read", "submit", adapters=("tickets",))


def test_whoami_tells_what_the_token_may_do(caller: Caller) -> None:
    answer = caller.client.get(WHOAMI)
    assert answer.status_code == 200
    assert answer.json() == {
        "token_name": "test",
        "user": caller.user.username,
        "scopes": ["read", "submit"],
        "adapters": ["tickets"],
        "expires_at": None,
    }


def test_no_token_is_401_with_the_way_to_authenticate() -> None:
    answer = APIClient().get(WHOAMI)
    assert_problem(answer, 401, "not-authenticated")
    assert answer["WWW-Authenticate"] == 'Bearer realm="assay"'


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: f"Basic {text}",
        lambda text: "Bearer",
        lambda text: "Bearer x",
        lambda text: f"Bearer {text}0",
        lambda text: f"Bearer {text[:-1]}",
        lambda text: "Bearer " + text.replace("assay_", "assay_0"),
        lambda text: "Bearer " + "a" * 5000,
        lambda text: "Bearer assay_\xff_\xff",
        lambda text: "Bearer assay__",
    ],
)
def test_damaged_tokens_are_refused(caller: Caller, spoil: object) -> None:
    assert callable(spoil)
    answer = client_with(spoil(caller.text)).get(WHOAMI)
    assert_problem(answer, 401, "token-invalid")
    assert answer["WWW-Authenticate"] == 'Bearer realm="assay"'


def test_expired_token(caller: Caller) -> None:
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert_problem(caller.client.get(WHOAMI), 401, "token-expired")
    # The reason is told only to who has the secret.
    assert_problem(client_with(f"Bearer {caller.text[:-1]}").get(WHOAMI), 401, "token-invalid")


def test_revoked_token(caller: Caller) -> None:
    token = ApiToken.objects.get()
    revoke_token(token=token, actor=SYSTEM)
    assert_problem(caller.client.get(WHOAMI), 401, "token-revoked")
    revoked_at = ApiToken.objects.get().revoked_at
    revoke_token(token=token, actor=SYSTEM)
    assert ApiToken.objects.get().revoked_at == revoked_at
    assert AuditEvent.objects.filter(action="token.revoke").count() == 1


def test_token_of_a_deactivated_user(caller: Caller) -> None:
    User.objects.update(is_active=False)
    assert_problem(caller.client.get(WHOAMI), 401, "user-inactive")


def test_use_is_noted_at_most_once_a_minute(caller: Caller) -> None:
    caller.client.get(WHOAMI)
    first = ApiToken.objects.get().last_used_at
    assert first is not None
    caller.client.get(WHOAMI)
    assert ApiToken.objects.get().last_used_at == first
    ApiToken.objects.update(last_used_at=first - timedelta(seconds=61))
    caller.client.get(WHOAMI)
    later = ApiToken.objects.get().last_used_at
    assert later is not None and later >= first


def test_the_secret_is_nowhere_in_the_database(caller: Caller) -> None:
    secret = caller.text.rpartition("_")[2]
    token = ApiToken.objects.get()
    assert token.secret_sha256 == hashlib.sha256(secret.encode()).hexdigest()
    rows = [*ApiToken.objects.values(), *AuditEvent.objects.values()]
    assert rows and secret not in str(rows)


def test_repr_of_an_issued_token_hides_it() -> None:
    issued = create_token(user=User.objects.create_user("u"), name="n", scopes=["read"], actor=SYSTEM)
    assert issued.text not in repr(issued)


def test_session_users_get_scopes_from_their_groups() -> None:
    user = User.objects.create_user("rev", is_staff=True)
    browser = APIClient()
    browser.force_login(user)
    assert browser.get(WHOAMI).json()["scopes"] == ["read"]
    for group, scopes in (("reviewers", ["read", "review"]), ("promoters", ["promote", "read", "review"])):
        user.groups.set([Group.objects.get_or_create(name=group)[0]])
        assert browser.get(WHOAMI).json()["scopes"] == scopes
    User.objects.update(is_superuser=True)
    assert "admin" in browser.get(WHOAMI).json()["scopes"]
    User.objects.update(is_superuser=False, is_staff=False)
    assert browser.get(WHOAMI).json()["scopes"] == []


def test_session_posts_need_the_csrf_token() -> None:
    browser = APIClient(enforce_csrf_checks=True)
    browser.force_login(User.objects.create_superuser("root"))
    answer = browser.post("/api/v1/channels", {"name": "staging"}, format="json")
    assert_problem(answer, 403, "permission-denied")
