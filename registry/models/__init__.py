"""Tables of the registry: what exists and what is promoted."""

from registry.models.access import ApiToken, AuditEvent, IdempotencyRecord
from registry.models.adapters import Adapter, AdapterVersion, BaseModel
from registry.models.artifacts import Artifact, ArtifactFile, Blob, Upload, UploadFile
from registry.models.channels import Channel, Promotion
from registry.models.datasets import Dataset, DatasetVersion
from registry.models.jobs import Job, JobAttempt, JobEvent

__all__ = [
    "Adapter",
    "AdapterVersion",
    "ApiToken",
    "Artifact",
    "ArtifactFile",
    "AuditEvent",
    "BaseModel",
    "Blob",
    "Channel",
    "Dataset",
    "DatasetVersion",
    "IdempotencyRecord",
    "Job",
    "JobAttempt",
    "JobEvent",
    "Promotion",
    "Upload",
    "UploadFile",
]
