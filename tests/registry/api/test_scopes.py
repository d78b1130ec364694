"""Every endpoint of the registry refuses callers that lack its scopes, and those who are nobody."""

import pytest
from rest_framework.test import APIClient

from registry.api.urls import urlpatterns
from registry.choices import TokenScope
from tests.fixtures.registry import assert_problem, make_caller

pytestmark = pytest.mark.django_db
ID, DIGEST = "0b7f6a52-6d0f-4c39-9d0c-0d6e3f1c8a11", "a" * 64
UPLOADERS = {"submit", "evaluate"}
READERS = {"read", "pull"}
ALL = set(TokenScope.values) - {"admin"}
# method, path, scopes of which one is enough (besides admin)
ENDPOINTS: list[tuple[str, str, set[str]]] = [
    ("POST", "uploads", UPLOADERS),
    ("GET", f"uploads/{ID}", UPLOADERS),
    ("PUT", f"uploads/{ID}/blobs/{DIGEST}", UPLOADERS),
    ("POST", f"uploads/{ID}/commit", UPLOADERS),
    ("GET", f"artifacts/{DIGEST}", READERS),
    ("GET", f"artifacts/{DIGEST}/files/a.txt", READERS),
    ("HEAD", f"artifacts/{DIGEST}/files/a.txt", READERS),
    ("GET", "base-models", ALL),
    ("POST", "base-models", set()),
    ("GET", "base-models/tiny", ALL),
    ("GET", "datasets", UPLOADERS | {"read"}),
    ("POST", "datasets", UPLOADERS),
    ("GET", "datasets/a", UPLOADERS | {"read"}),
    ("POST", "datasets/a/versions", UPLOADERS),
    ("GET", "channels", READERS | {"promote"}),
    ("POST", "channels", set()),
    ("GET", "channels/staging", READERS | {"promote"}),
    ("GET", "channels/staging/history", READERS | {"promote"}),
    ("POST", "channels/staging/rollback", {"promote"}),
    ("GET", "channels/staging/manifest", {"pull"}),
    ("GET", "audit-events", set()),
]


@pytest.mark.parametrize(("method", "path", "scopes"), ENDPOINTS)
def test_only_the_right_scopes_pass(method: str, path: str, scopes: set[str]) -> None:
    url = f"/api/v1/{path}"
    assert APIClient().generic(method, url).status_code == 401
    for scope in TokenScope.values:
        answer = make_caller(scope).client.generic(method, url, "{}", content_type="application/json")
        if scope in scopes or scope == "admin":
            assert answer.status_code not in (401, 403), (scope, answer.content)
        elif method == "HEAD":
            assert answer.status_code == 403
        else:
            assert_problem(answer, 403, "scope-missing")


def test_the_table_names_every_address() -> None:
    names = {pattern.name for pattern in urlpatterns if hasattr(pattern, "name")} - {"whoami"}
    views = {path.replace(ID, "I").replace(DIGEST, "D") for _, path, _ in ENDPOINTS}
    assert len(names) == len(views)


def test_a_user_without_any_scope_sees_only_itself() -> None:
    caller = make_caller("read")
    caller.client.credentials()
    caller.client.force_login(caller.user)
    assert caller.client.get("/api/v1/whoami").json()["scopes"] == []
    assert_problem(caller.client.get("/api/v1/channels"), 403, "scope-missing")
