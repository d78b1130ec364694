"""`Idempotency-Key`: one effect and one answer for a repeated request."""

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.views import APIView

from registry.api.urls import urlpatterns
from registry.models import Channel, IdempotencyRecord, Upload
from registry.services.idempotency import delete_old_answers
from tests.fixtures.registry import Caller, assert_problem, make_caller

pytestmark = pytest.mark.django_db
UPLOADS = "/api/v1/uploads"
BODY = {"kind": "adapter", "files": [{"path": "a", "size_bytes": 1, "sha256": "a" * 64}]}


@pytest.fixture
def caller() -> Caller:
    return make_caller("submit", "admin")


def post(caller: Caller, key: str, body: dict[str, Any] = BODY, url: str = UPLOADS) -> Any:
    return caller.client.post(url, body, format="json", headers={"Idempotency-Key": key})


def test_repeat_gets_the_same_answer(caller: Caller) -> None:
    first, second = post(caller, "k1"), post(caller, "k1")
    assert first.status_code == second.status_code == 201
    assert first.json() == second.json()
    assert second["Idempotent-Replayed"] == "true" and "Idempotent-Replayed" not in first
    assert first["Location"] == second["Location"]
    assert Upload.objects.count() == 1
    assert post(caller, "k2").json()["id"] != first.json()["id"]


def test_kept_headers(caller: Caller) -> None:
    first = post(caller, "k", {"name": "staging"}, "/api/v1/channels")
    second = post(caller, "k", {"name": "staging"}, "/api/v1/channels")
    assert (second.status_code, second["ETag"]) == (201, first["ETag"])
    assert Channel.objects.count() == 1


@pytest.mark.parametrize("change", ["body", "address"])
def test_key_of_another_request(caller: Caller, change: str) -> None:
    post(caller, "k")
    other = BODY | {"kind": "dataset"} if change == "body" else BODY
    answer = post(caller, "k", other, UPLOADS if change == "body" else "/api/v1/channels")
    assert_problem(answer, 422, "idempotency-key-reused")


def test_keys_of_different_users_do_not_meet(caller: Caller) -> None:
    first, second = post(caller, "k"), post(make_caller("submit"), "k")
    assert first.json()["id"] != second.json()["id"]


def test_request_in_flight(caller: Caller) -> None:
    post(caller, "k")
    IdempotencyRecord.objects.update(status=None, body=None)
    answer = post(caller, "k")
    assert_problem(answer, 409, "request-in-flight")
    assert int(answer["Retry-After"]) > 0
    # Its process died: after a while a repeat takes it over.
    IdempotencyRecord.objects.update(created_at=timezone.now() - timedelta(minutes=3))
    assert post(caller, "k").status_code == 201
    assert post(caller, "k")["Idempotent-Replayed"] == "true"


def test_failures_are_not_kept(caller: Caller) -> None:
    faulty = BODY | {"kind": "nonsense"}
    assert_problem(post(caller, "k", faulty), 422, "validation-failed")
    assert IdempotencyRecord.objects.count() == 0
    assert post(caller, "k").status_code == 201


@pytest.mark.parametrize("key", ["", "x" * 129, "a\tb"])
def test_bad_keys(caller: Caller, key: str) -> None:
    assert_problem(post(caller, key), 422, "idempotency-key-invalid")


def test_old_answers_are_forgotten(caller: Caller) -> None:
    post(caller, "k")
    assert delete_old_answers(now=timezone.now()) == 0
    assert delete_old_answers(now=timezone.now() + timedelta(days=2)) == 1


def test_every_post_of_the_registry_takes_a_key() -> None:
    without = []
    for pattern in urlpatterns:
        for leaf in getattr(pattern, "url_patterns", [pattern]):
            view: type[APIView] = leaf.callback.view_class
            method = getattr(view, "post", None)
            if method is not None and not _is_idempotent(method):
                without.append(view.__name__)
    assert without == []


def _is_idempotent(method: Any) -> bool:
    while method is not None:
        if getattr(method, "is_idempotent", False):
            return True
        method = getattr(method, "__wrapped__", None)
    return False
