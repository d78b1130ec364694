import json
import random
from collections.abc import Callable
from datetime import UTC, datetime

import httpx
import pytest

from client.errors import AssayApiError, ServerUnreachableError, UnexpectedAnswerError, UsageError
from client.http import AssayHttp, Retry, is_loopback, normalise_server_url
from client.retries import RetryPolicy, read_retry_after

Handler = Callable[[httpx.Request], httpx.Response]


def make_http(
    handler: Handler, pauses: list[float] | None = None, told: list[Retry] | None = None
) -> AssayHttp:
    policy = RetryPolicy(
        max_attempts=4,
        sleep=(pauses if pauses is not None else []).append,
        generator=random.Random(0),
    )
    on_retry = None if told is None else told.append
    transport = httpx.MockTransport(handler)
    return AssayHttp("http://server", "secret", retry_policy=policy, transport=transport, on_retry=on_retry)


def failing_first(
    num_failures: int, failure: Callable[[], httpx.Response], seen: list[httpx.Request]
) -> Handler:
    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return failure() if len(seen) <= num_failures else httpx.Response(200, json={"ok": True})

    return handle


def drop() -> httpx.Response:
    raise httpx.ConnectError("refused")


def test_connection_failures_are_retried_with_growing_pauses_and_told() -> None:
    pauses: list[float] = []
    told: list[Retry] = []
    http = make_http(failing_first(3, drop, []), pauses, told)
    assert http.get_json("whoami") == {"ok": True}
    # Equal jitter: pause n lies in [bound/2, bound] with bound 0.5 * 2^(n-1).
    for pause, bound in zip(pauses, (0.5, 1.0, 2.0), strict=True):
        assert bound / 2 <= pause <= bound
    assert [retry.attempt for retry in told] == [1, 2, 3]
    assert "refused" in told[0].reason


def test_a_server_that_stays_away_is_an_error_after_all_attempts() -> None:
    seen: list[httpx.Request] = []
    with pytest.raises(ServerUnreachableError) as caught:
        make_http(failing_first(99, drop, seen)).get_json("whoami")
    assert caught.value.code == "server-unreachable"
    assert len(seen) == 4


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_obeyed(status: int) -> None:
    pauses: list[float] = []
    busy = lambda: httpx.Response(status, headers={"Retry-After": "7"}, json={"code": "busy"})  # noqa: E731
    http = make_http(failing_first(1, busy, []), pauses)
    assert http.post_json("submissions", {}) == {"ok": True}
    assert pauses == [7.0]


def test_an_unreasonable_retry_after_is_not_waited_for() -> None:
    busy = lambda: httpx.Response(503, headers={"Retry-After": "3600"}, json={"code": "busy"})  # noqa: E731
    pauses: list[float] = []
    with pytest.raises(AssayApiError, match="Service Unavailable"):
        make_http(failing_first(1, busy, []), pauses).get_json("whoami")
    assert pauses == []


def test_retry_after_reads_seconds_and_dates() -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert read_retry_after("12") == 12.0
    # One minute after `now` (RFC 9110 section 5.6.7, IMF-fixdate).
    assert read_retry_after("Fri, 02 Jan 2026 03:05:05 GMT", now=now) == 60.0
    assert read_retry_after("Fri, 02 Jan 2026 03:00:00 GMT", now=now) == 0.0
    assert read_retry_after("soon") is None
    assert read_retry_after(None) is None


def test_every_attempt_of_a_post_carries_the_same_idempotency_key() -> None:
    seen: list[httpx.Request] = []
    http = make_http(failing_first(2, drop, seen))
    http.post_json("submissions", {"a": 1})
    http.post_json("submissions", {"a": 1})
    keys = [request.headers["Idempotency-Key"] for request in seen]
    assert keys[0] == keys[1] == keys[2] != keys[3]


def test_if_match_token_and_agent_are_sent() -> None:
    seen: list[httpx.Request] = []
    make_http(failing_first(0, drop, seen)).post_json("channels/x/promote", {}, if_match='"e"')
    assert seen[0].headers["If-Match"] == '"e"'
    assert seen[0].headers["Authorization"] == "Bearer secret"
    assert seen[0].headers["User-Agent"].startswith("assay-client/")
    assert seen[0].url.path == "/api/v1/channels/x/promote"


def test_the_repeat_of_a_post_waits_for_its_first_try() -> None:
    seen: list[httpx.Request] = []
    answering = lambda: httpx.Response(409, json={"code": "request-in-flight"})  # noqa: E731
    assert make_http(failing_first(2, answering, seen)).post_json("submissions", {}) == {"ok": True}


@pytest.mark.parametrize("status", [400, 401, 404, 409, 412, 422, 500])
def test_other_refusals_are_not_retried(status: int) -> None:
    seen: list[httpx.Request] = []
    refuse = lambda: httpx.Response(status, json={"code": "no", "title": "No"})  # noqa: E731
    with pytest.raises(AssayApiError) as caught:
        make_http(failing_first(9, refuse, seen)).get_json("whoami")
    assert (caught.value.status, caught.value.code, len(seen)) == (status, "no", 1)


def test_problem_documents_are_read_whole() -> None:
    document = {
        "type": "https://x/problems/dataset-invalid",
        "title": "Invalid dataset",
        "status": 422,
        "detail": "Two lines are at fault.",
        "code": "dataset-invalid",
        "errors": [
            {"code": "json", "message": "not JSON", "where": "data.jsonl line 17", "remedy": "mend it"},
            {"code": "id", "message": "twice"},
        ],
        "received_bytes": 5,
    }
    http = make_http(lambda _: httpx.Response(422, json=document))
    with pytest.raises(AssayApiError) as caught:
        http.post_json("datasets/x/versions", {})
    error = caught.value
    assert (error.code, error.title, error.detail) == (
        "dataset-invalid",
        "Invalid dataset",
        "Two lines are at fault.",
    )
    assert [item.where for item in error.errors] == ["data.jsonl line 17", None]
    assert error.errors[0].remedy == "mend it"
    assert error.extra == {"received_bytes": 5}


@pytest.mark.parametrize("body", ["<html>nginx</html>", '["a list"]', '{"code": 5}', ""])
def test_an_error_page_of_another_server_is_described(body: str) -> None:
    http = make_http(lambda _: httpx.Response(404, text=body))
    with pytest.raises(AssayApiError) as caught:
        http.get_json("whoami")
    assert caught.value.code == "http-404"
    assert "Is this the address of an Assay server" in caught.value.message


def test_a_redirect_names_its_target() -> None:
    answer = httpx.Response(301, headers={"Location": "https://server/api/v1/whoami"})
    with pytest.raises(AssayApiError, match="redirects to https://server/api/v1/whoami"):
        make_http(lambda _: answer).get_json("whoami")


def test_an_answer_that_is_not_json_is_unexpected() -> None:
    with pytest.raises(UnexpectedAnswerError):
        make_http(lambda _: httpx.Response(200, text="<html>")).get_json("whoami")


def test_pages_follow_next_on_the_server_that_was_asked() -> None:
    seen: list[str] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(str(request.url))
        is_first = "cursor" not in request.url.params
        following = "https://internal.name/api/v1/jobs?cursor=abc" if is_first else None
        return httpx.Response(200, json={"next": following, "results": [{"n": len(seen)}]})

    assert [item["n"] for item in make_http(handle).iterate_pages("jobs", {"kind": "merge"})] == [1, 2]
    assert seen == ["http://server/api/v1/jobs?kind=merge", "http://server/api/v1/jobs?cursor=abc"]


def test_the_token_does_not_follow_a_download_to_another_origin() -> None:
    seen: list[httpx.Request] = []

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        if request.url.host == "server":
            return httpx.Response(302, headers={"Location": "https://bucket.example/blob"})
        return httpx.Response(200, content=b"bytes")

    with make_http(handle).stream("artifacts/d/files/f") as response:
        assert response.read() == b"bytes"
    assert "Authorization" in seen[0].headers
    assert "Authorization" not in seen[1].headers


def test_none_is_left_out_of_a_query_and_booleans_are_json() -> None:
    def handle(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=json.dumps(dict(request.url.params)))

    http = make_http(handle)
    assert http.get_json("x", {"a": None, "b": False, "c": 3}) == {"b": "false", "c": "3"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("http://localhost:8000/", "http://localhost:8000"),
        (" https://assay.example/api/v1/ ", "https://assay.example"),
        ("https://host/assay", "https://host/assay"),
    ],
)
def test_server_addresses_are_normalised(given: str, expected: str) -> None:
    assert normalise_server_url(given) == expected


@pytest.mark.parametrize(
    "given", ["localhost:8000", "ftp://x", "http://", "http://u:p@x", "http://x?a=1", "http://x:99999"]
)
def test_what_is_no_server_address_is_refused(given: str) -> None:
    with pytest.raises(UsageError) as caught:
        normalise_server_url(given)
    assert caught.value.code == "invalid-url"


def test_loopback_addresses_are_known() -> None:
    assert is_loopback("http://127.0.0.1:8000")
    assert is_loopback("http://localhost")
    assert is_loopback("http://[::1]:1")
    assert not is_loopback("http://assay.example")
