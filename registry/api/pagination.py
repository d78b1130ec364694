"""Lists are walked by cursor: `{"next": url|null, "previous": url|null, "results": [...]}`."""

from typing import Any

from django.core.exceptions import ValidationError
from rest_framework.exceptions import NotFound
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request
from rest_framework.views import APIView

from registry.errors import AssayError

PAGE_SIZE = 50
MAX_PAGE_SIZE = 200


class AssayCursorPagination(CursorPagination):
    """Cursor pagination whose faulty cursors are the client's fault (400), not a missing page."""

    page_size = PAGE_SIZE
    page_size_query_param = "page_size"
    max_page_size = MAX_PAGE_SIZE

    def paginate_queryset(
        self, queryset: Any, request: Request, view: APIView | None = None
    ) -> list[Any] | None:
        """The rows of the page that the request's cursor names.

        Raises:
            AssayError: the cursor cannot be read (status 400, code `cursor-invalid`).
        """
        try:
            return super().paginate_queryset(queryset, request, view)
        except (NotFound, ValidationError, ValueError, OverflowError) as error:
            message = "The cursor cannot be read; follow 'next' and 'previous' as they are given."
            raise AssayError("cursor-invalid", message, status=400) from error


class CreatedCursorPagination(AssayCursorPagination):
    """Newest first."""

    ordering = ("-created_at", "-pk")


class NewestIdCursorPagination(AssayCursorPagination):
    """Newest first, for rows with a growing id and no `created_at`."""

    ordering = "-id"


class PositionCursorPagination(AssayCursorPagination):
    """In the order of `position`, for rows of a report."""

    ordering = "position"
