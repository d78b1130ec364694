"""Every error leaves the server as a problem document (RFC 9457) with a stable `code`.

`type` is a relative reference, `/problems/<code>`: codes are the same on every server. `errors` holds the
single faults; their `where` is a JSON pointer (RFC 6901) into the request's body, or a place inside an
uploaded file.
"""

import json
import logging
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.core.signals import got_request_exception
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.views import defaults
from rest_framework import exceptions
from rest_framework.response import Response

from registry.artifacts.errors import ArtifactError
from registry.artifacts.findings import shown
from registry.errors import AssayError, Fault, StoreFull, validation_failed

logger = logging.getLogger(__name__)

PROBLEM_CONTENT_TYPE = "application/problem+json"
API_PREFIX = "/api/"
_RESERVED_MEMBERS = frozenset({"type", "title", "status", "detail", "code", "instance", "errors"})
BUSY_RETRY_SECONDS = 2
# DRF's words for some errors, and the stable codes of this API.
_CODES_OF_DRF = {
    "parse_error": "body-unreadable",
    "not_authenticated": "not-authenticated",
    "authentication_failed": "token-invalid",
    "permission_denied": "permission-denied",
    "not_found": "not-found",
    "method_not_allowed": "method-not-allowed",
    "not_acceptable": "not-acceptable",
    "unsupported_media_type": "media-type-unsupported",
    "throttled": "throttled",
    "error": "error",
}


def problem_document(error: AssayError, *, instance: str) -> dict[str, Any]:
    """The JSON of an error.

    Args:
        error: What went wrong.
        instance: The path of the request.
    """
    document: dict[str, Any] = {
        "type": f"/problems/{error.code}",
        "title": error.title,
        "status": error.status,
        "detail": error.detail,
        "code": error.code,
        "instance": instance,
    }
    if error.faults:
        document["errors"] = [fault.to_json() for fault in error.faults]
    return document | {key: value for key, value in error.fields.items() if key not in _RESERVED_MEMBERS}


def handle_exception(exc: Exception, context: Mapping[str, Any]) -> Response:
    """DRF's exception handler: a problem document for every error, also for an unforeseen one (500)."""
    request = context["request"]
    error = _as_assay_error(exc)
    if error is None:
        error = AssayError(
            "internal-error", "The server failed; the fault is in its log, not in the request."
        )
        got_request_exception.send(sender=None, request=request)
    if error.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        logger.error("%s %s: %s", request.method, shown(request.path), error.code, exc_info=exc)
    response = Response(
        problem_document(error, instance=request.path), status=error.status, content_type=PROBLEM_CONTENT_TYPE
    )
    for name, value in _headers(exc, error).items():
        response[name] = value
    return response


def validation_faults(detail: Any, pointer: str = "") -> Iterator[Fault]:
    """The faults in the nested detail of a DRF ValidationError, each with the JSON pointer to its place."""
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            # The faults of the whole object stand under this key.
            is_whole = key == "non_field_errors"
            yield from validation_faults(value, pointer if is_whole else f"{pointer}/{_escape(str(key))}")
    elif isinstance(detail, list | tuple):
        for index, value in enumerate(detail):
            is_nested = isinstance(value, Mapping | list | tuple)
            yield from validation_faults(value, f"{pointer}/{index}" if is_nested else pointer)
    else:
        code = str(getattr(detail, "code", None) or "invalid").replace("_", "-")
        yield Fault(code=code, message=str(detail), where=pointer or "/")


def not_found_page(request: HttpRequest, exception: Exception) -> HttpResponse:
    """`handler404`: addresses that no view has; a problem document below /api/, Django's page elsewhere."""
    if not request.path.startswith(API_PREFIX):
        return defaults.page_not_found(request, exception)
    return _plain_problem(request, AssayError("not-found", "There is nothing at this address.", status=404))


def bad_request_page(request: HttpRequest, exception: Exception) -> HttpResponse:
    """`handler400`: requests that Django refuses before a view sees them."""
    if not request.path.startswith(API_PREFIX):
        return defaults.bad_request(request, exception)
    return _plain_problem(request, AssayError("bad-request", "The request is malformed.", status=400))


def server_error_page(request: HttpRequest) -> HttpResponse:
    """`handler500`: errors outside the API's views (middleware, rendering)."""
    if not request.path.startswith(API_PREFIX):
        return defaults.server_error(request)
    return _plain_problem(
        request, AssayError("internal-error", "The server failed; the fault is in its log.")
    )


def _plain_problem(request: HttpRequest, error: AssayError) -> HttpResponse:
    content = json.dumps(problem_document(error, instance=request.path))
    return HttpResponse(content, status=error.status, content_type=PROBLEM_CONTENT_TYPE)


def _as_assay_error(exc: Exception) -> AssayError | None:
    match exc:
        case AssayError():
            return exc
        case ArtifactError():
            return validation_failed(exc)
        case exceptions.ValidationError():
            return AssayError(
                "validation-failed",
                "The request has faults; 'errors' lists them.",
                status=HTTPStatus.UNPROCESSABLE_ENTITY,
                faults=validation_faults(exc.detail),
            )
        case exceptions.APIException():
            return _of_drf(exc)
        case Http404():
            return AssayError("not-found", "There is no such thing.", status=404)
        case PermissionDenied():
            return AssayError("permission-denied", "This is not allowed.", status=403)
        case RequestDataTooBig():
            return AssayError("body-too-large", "The body is larger than allowed.", status=413)
        case SuspiciousOperation():
            return AssayError("bad-request", "The request is malformed.", status=400)
        case OperationalError():
            return _of_database(exc)
    return None


def _of_drf(exc: exceptions.APIException) -> AssayError:
    code = str(getattr(exc.detail, "code", exc.default_code))
    code = _CODES_OF_DRF.get(code, code.replace("_", "-"))
    return AssayError(code, str(exc.detail), status=exc.status_code)


def _of_database(exc: OperationalError) -> AssayError | None:
    text = str(exc)
    if "disk is full" in text or "No space left" in text:
        return StoreFull("store-full")
    if "database is locked" in text:
        return AssayError("busy", "The database is busy; try again in a moment.", status=503)
    return None


def _headers(exc: Exception, error: AssayError) -> dict[str, str]:
    headers = {}
    if auth_header := getattr(exc, "auth_header", None):
        headers["WWW-Authenticate"] = str(auth_header)
    wait_seconds = getattr(exc, "wait", None)
    if wait_seconds is not None:
        headers["Retry-After"] = str(int(wait_seconds) + 1)
    elif error.status == HTTPStatus.SERVICE_UNAVAILABLE or error.code in ("request-in-flight", "upload-busy"):
        headers["Retry-After"] = str(BUSY_RETRY_SECONDS)
    return headers


def _escape(key: str) -> str:
    return shown(key).replace("~", "~0").replace("/", "~1")
