"""`Idempotency-Key` for the `post` methods of views."""

import functools
import hashlib
import json
from collections.abc import Callable

from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.base import AssayView
from registry.api.parsers import MAX_JSON_BYTES
from registry.errors import PayloadTooLarge
from registry.services.idempotency import StoredAnswer, abandon_request, begin_request, finish_request

HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotent-Replayed"
_KEPT_HEADERS = ("ETag", "Location")

PostMethod = Callable[..., Response]


def idempotent(method: PostMethod) -> PostMethod:
    """Decorates a view's `post`: a request repeated with the same key gets the answer that it got before.

    Without the header nothing changes. A key belongs to its user; the same key with another address, body or
    `If-Match` is refused (422 `idempotency-key-reused`), and while the first request is being answered so is
    its repeat (409 `request-in-flight`). Failed requests are not kept.
    """

    @functools.wraps(method)
    def post(view: AssayView, request: Request, *args: object, **kwargs: object) -> Response:
        key = request.headers.get(HEADER)
        if key is None:
            return method(view, request, *args, **kwargs)
        owner = f"user:{view.actor.user.pk}" if view.actor.user is not None else view.actor.name
        opened = begin_request(owner=owner, key=key, request_sha256=_fingerprint(request))
        if isinstance(opened, StoredAnswer):
            return _replay(opened)
        try:
            response = method(view, request, *args, **kwargs)
            finish_request(request=opened, answer=_keep(response))
        except BaseException:
            abandon_request(request=opened)
            raise
        return response

    post.is_idempotent = True  # type: ignore[attr-defined]  # looked at by the test that every POST has this
    return post


def _fingerprint(request: Request) -> str:
    http = request._request
    if int(http.META.get("CONTENT_LENGTH") or 0) > MAX_JSON_BYTES:
        raise PayloadTooLarge("body-too-large", limit_bytes=MAX_JSON_BYTES)
    parts = [http.method, http.get_full_path(), request.headers.get("If-Match", "")]
    digest = hashlib.sha256(json.dumps(parts).encode())
    digest.update(http.body)
    return digest.hexdigest()


def _keep(response: Response) -> StoredAnswer:
    data = json.loads(JSONRenderer().render(response.data) or b"null")
    headers = {name: response[name] for name in _KEPT_HEADERS if response.has_header(name)}
    return StoredAnswer(status=response.status_code, data=data, headers=headers)


def _replay(answer: StoredAnswer) -> Response:
    return Response(answer.data, status=answer.status, headers={**answer.headers, REPLAYED_HEADER: "true"})
