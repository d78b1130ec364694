"""Every error is a problem document."""

import logging

import pytest
from django.core.exceptions import PermissionDenied, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404
from rest_framework import exceptions
from rest_framework.test import APIClient, APIRequestFactory

from registry.api import channels, parsers
from registry.api.problems import handle_exception, validation_faults
from registry.artifacts.errors import DigestError
from tests.fixtures.registry import Caller, assert_problem, make_caller

pytestmark = pytest.mark.django_db
CHANNELS = "/api/v1/channels"


@pytest.fixture
def admin() -> Caller:
    return make_caller("admin")


def post(caller: Caller, body: str | bytes, content_type: str = "application/json") -> object:
    return caller.client.generic("POST", CHANNELS, body, content_type=content_type)


@pytest.mark.parametrize(
    "body",
    [
        " ",
        "{",
        b"\xff\xfe",
        '{"name": NaN}',
        '{"name": "a", "name": "b"}',
        '{"name": "a\\u0000"}',
        '{"name": "\\ud800"}',
        "[" * 100_000,
        '{"name": ' + "9" * 5000 + "}",
    ],
)
def test_bodies_that_are_no_strict_json(admin: Caller, body: str | bytes) -> None:
    assert_problem(post(admin, body), 400, "body-unreadable")


def test_body_that_is_no_object(admin: Caller) -> None:
    assert_problem(post(admin, "[]"), 422, "validation-failed")


def test_body_too_large(admin: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsers, "MAX_JSON_BYTES", 10)
    document = assert_problem(post(admin, '{"name": "staging"}'), 413, "body-too-large")
    assert document["limit_bytes"] == 10


def test_media_type(admin: Caller) -> None:
    assert_problem(post(admin, "a=b", "application/x-www-form-urlencoded"), 415, "media-type-unsupported")


def test_method(admin: Caller) -> None:
    answer = admin.client.delete(CHANNELS)
    assert_problem(answer, 405, "method-not-allowed")
    assert "POST" in answer["Allow"]


def test_not_acceptable(admin: Caller) -> None:
    assert_problem(admin.client.get(CHANNELS, headers={"Accept": "text/html"}), 406, "not-acceptable")


def test_unknown_address() -> None:
    document = assert_problem(APIClient().get("/api/v1/nonsense"), 404, "not-found")
    assert document["instance"] == "/api/v1/nonsense"


def test_unknown_address_outside_the_api_is_a_page() -> None:
    answer = APIClient().get("/nonsense")
    assert answer.status_code == 404
    assert "html" in answer["Content-Type"]


@pytest.mark.parametrize("cursor", ["!", "AAAA", "cD1ub3RhZGF0ZQ==", "bz0tMQ==", "cD0lMDA="])
def test_faulty_cursor(admin: Caller, cursor: str) -> None:
    admin.client.post(CHANNELS, {"name": "staging"}, format="json")
    answer = admin.client.get(CHANNELS, {"cursor": cursor})
    assert answer.status_code in (200, 400)
    if answer.status_code == 400:
        assert_problem(answer, 400, "cursor-invalid")


def test_faults_have_pointers_and_near_misses(admin: Caller) -> None:
    answer = admin.client.post(CHANNELS, {"nme": "staging", "form": "mergd"}, format="json")
    errors = assert_problem(answer, 422, "validation-failed")["errors"]
    by_place = {error["where"]: error for error in errors}
    assert by_place["/name"]["code"] == "required"
    assert by_place["/form"]["code"] == "invalid-choice"
    assert by_place["/nme"]["code"] == "unknown-field"
    assert "Did you mean 'name'?" in by_place["/nme"]["message"]


def test_pointers_into_lists(admin: Caller) -> None:
    body = {"kind": "adapter", "files": [{"path": "a", "size_bytes": 1, "sha256": "x"}, {"siz": 1}]}
    answer = admin.client.post("/api/v1/uploads", body, format="json")
    places = {error["where"] for error in assert_problem(answer, 422, "validation-failed")["errors"]}
    assert places == {
        "/files/0/sha256",
        "/files/1/path",
        "/files/1/size_bytes",
        "/files/1/sha256",
        "/files/1/siz",
    }


def test_pointer_escapes() -> None:
    detail = {"a/b~c": [exceptions.ErrorDetail("x", code="y_z")]}
    (fault,) = validation_faults(detail)
    # RFC 6901: "~" is "~0", "/" is "~1".
    assert (fault.where, fault.code) == ("/a~1b~0c", "y-z")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (exceptions.Throttled(wait=3.2), 429, "throttled"),
        (exceptions.NotFound(), 404, "not-found"),
        (Http404(), 404, "not-found"),
        (PermissionDenied(), 403, "permission-denied"),
        (SuspiciousOperation(), 400, "bad-request"),
        (OperationalError("database is locked"), 503, "busy"),
        (OperationalError("database or disk is full"), 507, "store-full"),
        (DigestError("no digest"), 422, "digest-invalid"),
    ],
)
def test_errors_of_the_libraries(error: Exception, status: int, code: str) -> None:
    response = handle_exception(error, {"request": APIRequestFactory().get("/api/v1/x")})
    assert response.status_code == status
    assert response.data["code"] == code
    if status in (429, 503):
        assert int(response["Retry-After"]) >= 1


def test_a_fault_of_ours_is_a_500_problem_and_is_logged(
    admin: Caller, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(channels, "list_channels", fail)
    admin.client.raise_request_exception = False
    with caplog.at_level(logging.ERROR):
        answer = admin.client.get(CHANNELS)
    assert_problem(answer, 500, "internal-error")
    assert b"secret detail" not in answer.content
    assert "secret detail" in caplog.text
