"""Base models."""

from drf_spectacular.utils import extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.base import AssayView, page_schema
from registry.api.idempotency import idempotent
from registry.api.strict import DigestField, NameField, StrictSerializer
from registry.choices import TokenScope
from registry.models import BaseModel
from registry.selectors.base_models import get_base_model, list_base_models
from registry.services.base_models import register_base_model

_READERS = tuple(scope for scope in TokenScope.values if scope != TokenScope.ADMIN)


class BaseModelRequestSerializer(StrictSerializer):
    """A base model that is to be registered."""

    name = NameField()
    artifact = DigestField()
    source = serializers.CharField(max_length=255, allow_blank=True, default="")  # type: ignore[assignment]


class BaseModelSerializer(serializers.Serializer[BaseModel]):
    """A registered base model. `chat_template_sha256` is null when the tokenizer has no template."""

    name = serializers.CharField()
    artifact = serializers.CharField(source="artifact_id")
    architecture = serializers.CharField()
    num_parameters = serializers.IntegerField()
    dtype = serializers.CharField()
    size_bytes = serializers.IntegerField(source="artifact.size_bytes")
    chat_template_sha256 = serializers.SerializerMethodField()
    source = serializers.CharField()  # type: ignore[assignment]
    created_at = serializers.DateTimeField()

    def get_chat_template_sha256(self, model: BaseModel) -> str | None:
        """The template's hash."""
        return model.chat_template_sha256 or None


class BaseModelListView(AssayView):
    """All base models."""

    scopes = {"GET": _READERS, "POST": (TokenScope.ADMIN,)}

    @extend_schema(
        operation_id="base_models_list", tags=["base models"], responses=page_schema(BaseModelSerializer)
    )
    def get(self, request: Request) -> Response:
        """Lists base models, newest first."""
        return self.page_of(list_base_models(), BaseModelSerializer)

    @extend_schema(
        operation_id="base_models_create",
        tags=["base models"],
        request=BaseModelRequestSerializer,
        responses={200: BaseModelSerializer, 201: BaseModelSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Registers an uploaded model; the same name and bytes again give the same model with 200."""
        body = self.validated(BaseModelRequestSerializer)
        model, is_new = register_base_model(
            name=body["name"], artifact_digest=body["artifact"], source=body["source"], actor=self.actor
        )
        code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        return Response(BaseModelSerializer(model).data, status=code)


class BaseModelDetailView(AssayView):
    """One base model."""

    scopes = {"GET": _READERS}

    @extend_schema(operation_id="base_models_retrieve", tags=["base models"], responses=BaseModelSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Shows a base model."""
        return Response(BaseModelSerializer(get_base_model(name)).data)
