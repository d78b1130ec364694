"""Reads of adapters and their versions."""

from django.db.models import QuerySet

from registry.artifacts.findings import shown
from registry.errors import NotFoundError
from registry.models import Adapter, AdapterVersion
from registry.selectors.near import get_by_name


def get_adapter(name: str) -> Adapter:
    """The adapter of that name.

    Raises:
        NotFoundError: there is none.
    """
    return get_by_name(Adapter.objects.all(), name, code="adapter-not-found")


def list_versions() -> QuerySet[AdapterVersion, AdapterVersion]:
    """All versions with what names them."""
    return AdapterVersion.objects.select_related("adapter", "base_model", "artifact", "merged_artifact")


def get_version(*, adapter_name: str, number: int) -> AdapterVersion:
    """One version of an adapter.

    Raises:
        NotFoundError: there is no such adapter or version.
    """
    adapter = get_adapter(adapter_name)
    version = list_versions().filter(adapter=adapter, number=number).first()
    if version is None:
        raise NotFoundError("version-not-found", reference=f"{shown(adapter_name)}@{number}")
    return version
