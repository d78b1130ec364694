"""What the views of all apps share: scopes by method, the actor, pages and ETags."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from registry.api.pagination import AssayCursorPagination, CreatedCursorPagination
from registry.api.parsers import LimitedJsonParser
from registry.errors import AssayError, PreconditionFailed, PreconditionRequired
from registry.models import Channel
from registry.selectors.channels import channel_etag, revision_of_etag
from registry.services.actors import Actor, actor_from_request

ANY_CALLER: tuple[str, ...] = ("*",)
"""In `AssayView.scopes`: whoever is authenticated."""
_ETAG = re.compile(r'\s*(?:W/)?"?([^",\s]+)"?\s*')


class AssayView(APIView):
    """Base of all API views.

    `scopes` maps a method to the scopes of which the caller needs one. A method that is not in it is refused,
    so a view cannot be opened by forgetting. Services check again, with the adapter where one is concerned.
    """

    parser_classes = (LimitedJsonParser,)
    scopes: ClassVar[Mapping[str, tuple[str, ...]]] = {}

    @property
    def actor(self) -> Actor:
        """Who makes this request."""
        if not hasattr(self, "_actor"):
            self._actor = actor_from_request(self.request)
        return self._actor

    def check_permissions(self, request: Request) -> None:
        """Refuses a caller who is not authenticated (401) or lacks every scope for the method (403)."""
        super().check_permissions(request)
        method = "GET" if request.method == "HEAD" else str(request.method)
        allowed = self.scopes.get(method, ())
        if method != "OPTIONS" and hasattr(self, method.lower()) and allowed != ANY_CALLER:
            self.actor.require_any(allowed)

    def validated(self, serializer_class: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The request's body, checked by a serializer.

        Raises:
            ValidationError: the body has faults; the handler makes a 422 of it.
        """
        serializer = serializer_class(data=self.request.data)
        serializer.is_valid(raise_exception=True)
        values: dict[str, Any] = serializer.validated_data
        return values

    def page_of(
        self,
        queryset: QuerySet[Any, Any],
        serializer_class: type[serializers.BaseSerializer[Any]],
        *,
        pagination_class: type[AssayCursorPagination] = CreatedCursorPagination,
    ) -> Response:
        """One page of a list."""
        paginator = pagination_class()
        rows = paginator.paginate_queryset(queryset, self.request, self)
        serializer = serializer_class(rows, many=True, context={"request": self.request})
        return paginator.get_paginated_response(serializer.data)


def query_choice(request: Request, name: str, choices: list[str]) -> str | None:
    """A query parameter that is one of several words; None when it is not given.

    Raises:
        AssayError: another word (status 400).
    """
    value = request.query_params.get(name)
    if value is None or value in choices:
        return value
    raise AssayError("query-invalid", f"{name} must be one of {', '.join(choices)}.", status=400)


def query_integer(request: Request, name: str, *, default: int | None = None) -> int | None:
    """A query parameter that is a whole number from 0 to 2^31-1; `default` when it is not given.

    Raises:
        AssayError: something else (status 400).
    """
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdigit()) or int(text[:12]) >= 2**31:
        raise AssayError("query-invalid", f"{name} must be a whole number.", status=400)
    return int(text)


def query_text(request: Request, name: str, *, max_chars: int = 160) -> str | None:
    """A query parameter that is a short text; None when it is not given.

    Raises:
        AssayError: it is too long or holds what a database cannot compare with (status 400).
    """
    text = request.query_params.get(name)
    if text is not None and (len(text) > max_chars or not text.isprintable()):
        raise AssayError(
            "query-invalid", f"{name} must be a text of at most {max_chars} characters.", status=400
        )
    return text


def etags_in(header: str) -> list[str]:
    """The tags of an `If-Match` or `If-None-Match` header without quotes; `*` stays as it is."""
    return [found.group(1) for part in header.split(",") if (found := _ETAG.fullmatch(part))]


def expected_revision(request: Request, channel: Channel) -> int:
    """The revision of a channel that the client wants to change, from `If-Match` (`*`: whatever it is now).

    Raises:
        PreconditionRequired: there is no such header (428).
        PreconditionFailed: what is in it is no ETag of a channel (412).
    """
    header = request.headers.get("If-Match", "").strip()
    if not header:
        raise PreconditionRequired("precondition-required")
    if header == "*":
        return channel.revision
    for etag in etags_in(header):
        revision = revision_of_etag(etag)
        if revision is not None:
            return revision
    raise PreconditionFailed("channel-changed", name=channel.name, etag=channel_etag(channel))


def is_unchanged(request: Request, etag: str) -> bool:
    """Whether `If-None-Match` names this ETag, so that the answer is 304."""
    return bool({etag, "*"} & set(etags_in(request.headers.get("If-None-Match", ""))))


def page_schema(serializer_class: type[serializers.BaseSerializer[Any]]) -> serializers.Serializer[Any]:
    """The page of a list, for the OpenAPI document."""
    name = serializer_class.__name__.removesuffix("Serializer")
    page: serializers.Serializer[Any] = inline_serializer(
        name=f"{name}Page",
        fields={
            "next": serializers.URLField(allow_null=True),
            "previous": serializers.URLField(allow_null=True),
            "results": serializer_class(many=True),
        },
    )
    return page
