"""HTTP session with the server: authentication, retries, timeouts and problem documents.

Knows nothing of what the paths mean (that is ``client.api``) and reads neither files nor environment.
"""

import json
import platform
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Self
from urllib.parse import urlsplit

import httpx

from client import __version__
from client.errors import AssayApiError, AssayError, ServerUnreachableError, UnexpectedAnswerError, UsageError
from client.json_fields import Fields
from client.models import read_error_details
from client.retries import RetryPolicy, read_retry_after

API_PREFIX = "/api/v1"
_PROBLEM_MEMBERS = frozenset({"type", "title", "status", "detail", "code", "errors", "instance"})

QueryValue = str | int | bool | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """Told to the caller before a pause: what failed and how long the pause is."""

    reason: str
    attempt: int
    pause_seconds: float


def normalise_server_url(url: str) -> str:
    """Return the server's address without a trailing slash or API path.

    >>> normalise_server_url("http://localhost:8000/api/v1/")
    'http://localhost:8000'

    Raises:
        UsageError: It is not an http or https address, or carries a user name or password.
    """
    text = url.strip().rstrip("/").removesuffix(API_PREFIX).rstrip("/")
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError as error:
        raise UsageError("invalid-url", f"'{url}' is not a server address: {error}.") from error
    if parts.scheme not in {"http", "https"} or not has_host or parts.query or parts.fragment:
        raise UsageError(
            "invalid-url", f"'{url}' is not a server address; give one like http://localhost:8000."
        )
    if parts.username or parts.password:
        raise UsageError("invalid-url", "A server address must not hold a user name or password.")
    return text


def is_loopback(url: str) -> bool:
    """Whether the address names this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


class AssayHttp:
    """A session with one server. Safe to use from several threads.

    Args:
        server_url: The server's address, with or without ``/api/v1``.
        token: API token, or None for what needs none.
        retry_policy: Pauses between attempts.
        timeout: Timeouts of a single attempt.
        on_retry: Told before each pause; None for nobody.
        transport: Replaces the network in tests.
    """

    def __init__(
        self,
        server_url: str,
        token: str | None,
        *,
        retry_policy: RetryPolicy | None = None,
        timeout: httpx.Timeout | None = None,
        on_retry: Callable[[Retry], None] | None = None,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.server_url = normalise_server_url(server_url)
        self.retry_policy = retry_policy or RetryPolicy()
        self._token = token
        self._on_retry = on_retry
        self._client = httpx.Client(
            timeout=timeout or httpx.Timeout(60.0, connect=10.0),
            transport=transport,
            headers={
                "User-Agent": f"assay-client/{__version__} python/{platform.python_version()}",
                "Accept": "application/json, application/problem+json",
            },
            # A proxy set for the outside world cannot reach a server on this machine.
            trust_env=not is_loopback(self.server_url),
        )

    def __enter__(self) -> Self:
        """Return itself; leaving closes the connections."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connections."""
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, QueryValue] | None = None,
        body: object | None = None,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        ok_statuses: frozenset[int] = frozenset(),
    ) -> httpx.Response:
        """Send a request, again where that is safe, and return an answer with a 2xx status.

        Args:
            method: HTTP method. A POST always carries an Idempotency-Key, so it is safe to repeat too.
            path: Path below ``/api/v1``; one that starts with "/" is taken from the root.
            params: Query; members that are None are left out.
            body: JSON value to send, or None.
            content: Raw bytes to send instead of ``body``.
            headers: Further headers.
            ok_statuses: Statuses outside 2xx that are an answer and not an error.

        Raises:
            AssayApiError: The server refused.
            ServerUnreachableError: No answer after all attempts.
        """
        sent_headers = dict(headers or {})
        if method == "POST":
            sent_headers.setdefault("Idempotency-Key", str(uuid.uuid4()))
        request = self._build(method, path, params=params, body=body, content=content, headers=sent_headers)
        attempt = 1
        while True:
            try:
                return self._send_once(request, ok_statuses)
            except (ServerUnreachableError, AssayApiError) as error:
                self._pause_or_raise(error, attempt)
            attempt += 1

    def _pause_or_raise(self, error: ServerUnreachableError | AssayApiError, attempt: int) -> None:
        """Sleep before the next attempt, or raise the error when there shall be none."""
        retry_after_seconds = None
        if isinstance(error, AssayApiError):
            if not error.is_transient:
                raise error
            retry_after_seconds = error.retry_after_seconds
        elif error.code == "certificate-not-trusted":
            raise error
        pause_seconds = self.retry_policy.pause_seconds(attempt, retry_after_seconds)
        if pause_seconds is None:
            raise error
        if self._on_retry is not None:
            self._on_retry(Retry(reason=error.message, attempt=attempt, pause_seconds=pause_seconds))
        self.retry_policy.sleep(pause_seconds)

    def _build(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, QueryValue] | None,
        body: object | None,
        content: bytes | None,
        headers: Mapping[str, str],
    ) -> httpx.Request:
        url = self.server_url + (path if path.startswith("/") else f"{API_PREFIX}/{path}")
        query = {key: _query_text(value) for key, value in (params or {}).items() if value is not None}
        all_headers = dict(headers)
        if self._token is not None:
            all_headers["Authorization"] = f"Bearer {self._token}"
        if body is not None:
            content = json.dumps(body, ensure_ascii=False, allow_nan=False).encode()
            all_headers["Content-Type"] = "application/json"
        elif content is not None:
            all_headers.setdefault("Content-Type", "application/octet-stream")
        return self._client.build_request(
            method, url, params=query or None, content=content, headers=all_headers
        )

    def _send_once(self, request: httpx.Request, ok_statuses: frozenset[int]) -> httpx.Response:
        with _network_errors(self.server_url):
            response = self._client.send(request)
        if response.is_success or response.status_code in ok_statuses:
            return response
        raise read_problem(response)

    @contextmanager
    def stream(self, path: str, *, headers: Mapping[str, str] | None = None) -> Iterator[httpx.Response]:
        """Open a GET whose body is read piece by piece; a single attempt.

        Follows redirects, as an object store in the background needs; the token is not sent to another
        origin.

        Raises:
            AssayApiError: The server refused.
            ServerUnreachableError: No answer, or the connection ended in the middle of the body.
        """
        request = self._build("GET", path, params=None, body=None, content=None, headers=headers or {})
        with _network_errors(self.server_url):
            response = self._client.send(request, stream=True, follow_redirects=True)
            try:
                if not response.is_success:
                    response.read()
                    raise read_problem(response)
                yield response
            finally:
                response.close()

    def get_json(self, path: str, params: Mapping[str, QueryValue] | None = None) -> object:
        """GET a JSON document."""
        return read_json(self.request("GET", path, params=params))

    def post_json(self, path: str, body: object | None = None, *, if_match: str | None = None) -> object:
        """POST a JSON document and return the answer's; an empty answer gives None."""
        headers = {} if if_match is None else {"If-Match": if_match}
        response = self.request("POST", path, body={} if body is None else body, headers=headers)
        return read_json(response) if response.content else None

    def iterate_pages(
        self, path: str, params: Mapping[str, QueryValue] | None = None
    ) -> Iterator[Mapping[str, object]]:
        """Yield the members of a cursor-paginated list, page after page."""
        next_path: str | None = path
        next_params = params
        while next_path is not None:
            page = Fields.of(self.get_json(next_path, next_params), "list")
            yield from (item.source for item in page.objects("results"))
            following = page.optional_text("next")
            # Only path and query are used: behind a proxy the server may name itself by another host.
            next_path = None if following is None else _path_and_query(following)
            next_params = None


def _query_text(value: QueryValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _path_and_query(url: str) -> str:
    parts = urlsplit(url)
    return f"/{parts.path.lstrip('/')}?{parts.query}" if parts.query else f"/{parts.path.lstrip('/')}"


@contextmanager
def _network_errors(server_url: str) -> Iterator[None]:
    try:
        yield
    except httpx.TimeoutException as error:
        raise ServerUnreachableError("timeout", f"{server_url} did not answer in time.") from error
    except httpx.TransportError as error:
        reason = str(error) or type(error).__name__
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            raise ServerUnreachableError(
                "certificate-not-trusted",
                f"The certificate of {server_url} is not trusted ({reason}). "
                "Name your authority's file in SSL_CERT_FILE.",
            ) from error
        raise ServerUnreachableError(
            "server-unreachable", f"{server_url} cannot be reached ({reason})."
        ) from error
    except httpx.HTTPError as error:
        raise ServerUnreachableError(
            "broken-answer", f"The answer of {server_url} is broken ({error})."
        ) from error


def read_json(response: httpx.Response) -> object:
    """Return the decoded body.

    Raises:
        UnexpectedAnswerError: It is not JSON; most often the address is not an Assay server's.
    """
    try:
        value: object = response.json()
    except ValueError as error:
        raise UnexpectedAnswerError(
            "unexpected-answer",
            f"{response.url} answered {response.status_code} with something that is not JSON. "
            "Is this the address of an Assay server?",
        ) from error
    return value


def read_problem(response: httpx.Response) -> AssayApiError:
    """Read a problem document; an answer of any other form is described by its status.

    Args:
        response: An answer with an error status, its body read.
    """
    fallback_title = response.reason_phrase or f"HTTP {response.status_code}"
    retry_after_seconds = read_retry_after(response.headers.get("Retry-After"))
    try:
        fields = Fields.of(response.json(), "problem document")
        return AssayApiError(
            status=response.status_code,
            code=fields.optional_text("code") or f"http-{response.status_code}",
            title=fields.optional_text("title") or fallback_title,
            detail=fields.optional_text("detail") or "",
            errors=read_error_details(fields.objects("errors")),
            extra={key: value for key, value in fields.source.items() if key not in _PROBLEM_MEMBERS},
            retry_after_seconds=retry_after_seconds,
        )
    except (ValueError, AssayError):
        return AssayApiError(
            status=response.status_code,
            code=f"http-{response.status_code}",
            title=fallback_title,
            detail=_describe_plain_answer(response, fallback_title),
            retry_after_seconds=retry_after_seconds,
        )


def _describe_plain_answer(response: httpx.Response, title: str) -> str:
    target = response.headers.get("Location")
    if response.is_redirect and target:
        return f"{response.url} redirects to {target}; use the address that it redirects to."
    return (
        f"{response.request.method} {response.url} answered {response.status_code} {title} without a problem "
        "document. Is this the address of an Assay server, and is it in good order?"
    )
