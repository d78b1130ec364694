"""`GET /whoami`: what the caller's token or session may do."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.base import ANY_CALLER, AssayView
from registry.choices import TokenScope


class IdentitySerializer(serializers.Serializer[object]):
    """Who the caller is. `adapters` null means all; `token_name` is null for a browser's session."""

    token_name = serializers.CharField(allow_null=True)
    user = serializers.CharField()
    scopes = serializers.ListField(child=serializers.ChoiceField(choices=TokenScope.choices))
    adapters = serializers.ListField(child=serializers.CharField(), allow_null=True)
    expires_at = serializers.DateTimeField(allow_null=True)


class WhoamiView(AssayView):
    """The caller's identity."""

    scopes = {"GET": ANY_CALLER}

    @extend_schema(operation_id="whoami", tags=["identity"], responses=IdentitySerializer)
    def get(self, request: Request) -> Response:
        """Says who the caller is and what it may do."""
        actor, token = self.actor, self.actor.token
        identity = {
            "token_name": None if token is None else token.name,
            "user": actor.name if actor.user is None else actor.user.get_username(),
            "scopes": sorted(actor.scopes),
            "adapters": None if actor.adapter_names is None else sorted(actor.adapter_names),
            "expires_at": None if token is None else token.expires_at,
        }
        return Response(IdentitySerializer(identity).data)
