"""Datasets and their versions."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.base import AssayView, page_schema, query_choice
from registry.api.idempotency import idempotent
from registry.api.strict import DigestField, NameField, StrictSerializer
from registry.choices import DatasetRole, TokenScope
from registry.models import Dataset
from registry.selectors.datasets import get_dataset, list_datasets
from registry.services.datasets import SCOPES, ensure_dataset, register_dataset_version

_READERS = (TokenScope.READ.value, TokenScope.SUBMIT.value, TokenScope.EVALUATE.value)


class DatasetRequestSerializer(StrictSerializer):
    """A dataset that is to be made."""

    name = NameField()
    role = serializers.ChoiceField(choices=DatasetRole.choices)


class DatasetVersionRequestSerializer(StrictSerializer):
    """A dataset version that is to be registered: an artifact with one file, `data.jsonl`."""

    artifact = DigestField()
    role = serializers.ChoiceField(choices=DatasetRole.choices)


class DatasetVersionSerializer(serializers.Serializer[Any]):
    """A checked dataset version."""

    dataset = serializers.CharField(source="dataset.name")
    number = serializers.IntegerField()
    reference = serializers.CharField(source="__str__")
    role = serializers.CharField(source="dataset.role")
    artifact = serializers.CharField(source="artifact_id")
    num_examples = serializers.IntegerField()
    num_verified = serializers.IntegerField()
    is_verified = serializers.BooleanField()
    num_reviewed = serializers.IntegerField()
    num_bad = serializers.IntegerField()
    num_to_fix = serializers.IntegerField()
    card = serializers.JSONField()
    created_at = serializers.DateTimeField()


class DatasetSerializer(serializers.Serializer[Dataset]):
    """A dataset with its newest version; `latest` is null when it has none."""

    name = serializers.CharField()
    role = serializers.CharField()
    num_versions = serializers.SerializerMethodField()
    latest = serializers.SerializerMethodField()
    created_at = serializers.DateTimeField()

    def get_num_versions(self, dataset: Dataset) -> int:
        """How many versions there are."""
        return len(dataset.versions.all())

    @extend_schema_field(DatasetVersionSerializer(allow_null=True))
    def get_latest(self, dataset: Dataset) -> Any:
        """The newest version."""
        versions = dataset.versions.all()
        newest = max(versions, key=lambda version: version.number, default=None)
        return None if newest is None else DatasetVersionSerializer(newest).data


class DatasetDetailSerializer(DatasetSerializer):
    """A dataset with all its versions, newest first."""

    versions = serializers.SerializerMethodField()

    @extend_schema_field(DatasetVersionSerializer(many=True))
    def get_versions(self, dataset: Dataset) -> Any:
        """All versions."""
        return DatasetVersionSerializer(dataset.versions.order_by("-number"), many=True).data


class DatasetListView(AssayView):
    """All datasets."""

    scopes = {"GET": _READERS, "POST": SCOPES}

    @extend_schema(
        operation_id="datasets_list",
        tags=["datasets"],
        parameters=[OpenApiParameter("role", OpenApiTypes.STR, enum=DatasetRole.values)],
        responses=page_schema(DatasetSerializer),
    )
    def get(self, request: Request) -> Response:
        """Lists datasets, newest first."""
        role = query_choice(request, "role", DatasetRole.values)
        return self.page_of(list_datasets(role=role), DatasetSerializer)

    @extend_schema(
        operation_id="datasets_create",
        tags=["datasets"],
        request=DatasetRequestSerializer,
        responses={200: DatasetSerializer, 201: DatasetSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Makes an empty dataset; the same name and role again give the same dataset with 200."""
        body = self.validated(DatasetRequestSerializer)
        dataset, is_new = ensure_dataset(name=body["name"], role=body["role"], actor=self.actor)
        code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        return Response(DatasetSerializer(dataset).data, status=code)


class DatasetDetailView(AssayView):
    """One dataset."""

    scopes = {"GET": _READERS}

    @extend_schema(operation_id="datasets_retrieve", tags=["datasets"], responses=DatasetDetailSerializer)
    def get(self, request: Request, name: str) -> Response:
        """Shows a dataset and its versions."""
        return Response(DatasetDetailSerializer(get_dataset(name)).data)


class DatasetVersionListView(AssayView):
    """The versions of a dataset."""

    scopes = {"POST": SCOPES}

    @extend_schema(
        operation_id="dataset_versions_create",
        tags=["datasets"],
        request=DatasetVersionRequestSerializer,
        responses={200: DatasetVersionSerializer, 201: DatasetVersionSerializer},
    )
    @idempotent
    def post(self, request: Request, name: str) -> Response:
        """Checks an uploaded `data.jsonl` and registers it; the same bytes give the same version with 200."""
        body = self.validated(DatasetVersionRequestSerializer)
        version, is_new = register_dataset_version(
            name=name, role=body["role"], artifact_digest=body["artifact"], actor=self.actor
        )
        code = status.HTTP_201_CREATED if is_new else status.HTTP_200_OK
        return Response(DatasetVersionSerializer(version).data, status=code)
