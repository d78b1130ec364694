"""Addresses of the registry below /api/v1."""

from django.urls import URLPattern, URLResolver, include, path

from registry.api.artifacts import ArtifactDetailView, ArtifactFileView
from registry.api.audit import AuditEventListView
from registry.api.base_models import BaseModelDetailView, BaseModelListView
from registry.api.channels import (
    ChannelDetailView,
    ChannelHistoryView,
    ChannelListView,
    ChannelManifestView,
    ChannelRollbackView,
)
from registry.api.datasets import DatasetDetailView, DatasetListView, DatasetVersionListView
from registry.api.identity import WhoamiView
from registry.api.uploads import UploadBlobView, UploadCommitView, UploadDetailView, UploadListView

urlpatterns: list[URLPattern | URLResolver] = [
    path("whoami", WhoamiView.as_view(), name="whoami"),
    path("uploads", UploadListView.as_view(), name="upload-list"),
    path("uploads/<uuid:upload_id>", UploadDetailView.as_view(), name="upload-detail"),
    path("uploads/<uuid:upload_id>/blobs/<str:sha256>", UploadBlobView.as_view(), name="upload-blob"),
    path("uploads/<uuid:upload_id>/commit", UploadCommitView.as_view(), name="upload-commit"),
    path("artifacts/<str:digest>", ArtifactDetailView.as_view(), name="artifact-detail"),
    path("artifacts/<str:digest>/files/<path:path>", ArtifactFileView.as_view(), name="artifact-file"),
    path("base-models", BaseModelListView.as_view(), name="base-model-list"),
    path("base-models/<str:name>", BaseModelDetailView.as_view(), name="base-model-detail"),
    path("datasets", DatasetListView.as_view(), name="dataset-list"),
    path("datasets/<str:name>", DatasetDetailView.as_view(), name="dataset-detail"),
    path("datasets/<str:name>/versions", DatasetVersionListView.as_view(), name="dataset-version-list"),
    path("channels", ChannelListView.as_view(), name="channel-list"),
    path("channels/<str:name>", ChannelDetailView.as_view(), name="channel-detail"),
    path("channels/<str:name>/history", ChannelHistoryView.as_view(), name="channel-history"),
    path("channels/<str:name>/rollback", ChannelRollbackView.as_view(), name="channel-rollback"),
    path("channels/<str:name>/manifest", ChannelManifestView.as_view(), name="channel-manifest"),
    path("", include("registry.api.job_urls")),
    path("audit-events", AuditEventListView.as_view(), name="audit-event-list"),
]
