"""The audit log, for admins."""

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.base import AssayView, page_schema, query_text
from registry.api.pagination import NewestIdCursorPagination
from registry.choices import TokenScope
from registry.models import AuditEvent
from registry.selectors.audit import list_audit_events

FILTERS = ("actor", "action", "object_type", "object_id")


class AuditEventSerializer(serializers.Serializer[AuditEvent]):
    """One change of state. `before` is null for a creation, `after` for a deletion."""

    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    actor = serializers.CharField()
    action = serializers.CharField()
    object_type = serializers.CharField()
    object_id = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)
    reason = serializers.CharField()


class AuditEventListView(AssayView):
    """All audit rows."""

    scopes = {"GET": (TokenScope.ADMIN,)}

    @extend_schema(
        operation_id="audit_events_list",
        tags=["audit"],
        parameters=[OpenApiParameter(name, OpenApiTypes.STR) for name in FILTERS],
        responses=page_schema(AuditEventSerializer),
    )
    def get(self, request: Request) -> Response:
        """Lists changes of state, newest first."""
        conditions = {name: query_text(request, name) for name in FILTERS}
        return self.page_of(
            list_audit_events(**conditions), AuditEventSerializer, pagination_class=NewestIdCursorPagination
        )
