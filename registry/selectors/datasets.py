"""Reads of datasets and their versions."""

from django.db.models import QuerySet

from registry.artifacts.findings import shown
from registry.errors import NotFoundError
from registry.models import Dataset, DatasetVersion
from registry.selectors.near import MAX_COMPARED_NAMES, get_by_name
from registry.services.names import near_misses, parse_reference


def list_datasets(*, role: str | None = None) -> QuerySet[Dataset, Dataset]:
    """All datasets, or those of one role."""
    datasets = Dataset.objects.prefetch_related("versions__dataset")
    return datasets if role is None else datasets.filter(role=role)


def get_dataset(name: str) -> Dataset:
    """The dataset of that name.

    Raises:
        NotFoundError: there is none.
    """
    return get_by_name(list_datasets(), name, code="dataset-not-found")


def get_dataset_version(reference: str, *, where: str = "", role: str | None = None) -> DatasetVersion:
    """The version that `name@number` names; `name` alone names the newest.

    Args:
        reference: As a client wrote it.
        where: Place of the reference in the client's input, for the fault.
        role: When given, versions of datasets of another role are not found.

    Raises:
        ValidationFailed: the reference has not that form.
        NotFoundError: there is none.
    """
    parsed = parse_reference(reference, where=where or "reference")
    versions = DatasetVersion.objects.select_related("dataset", "artifact").filter(dataset__name=parsed.name)
    if role is not None:
        versions = versions.filter(dataset__role=role)
    if parsed.number is not None:
        versions = versions.filter(number=parsed.number)
    version = versions.order_by("-number").first()
    if version is None:
        known = DatasetVersion.objects.order_by("-created_at").values_list("dataset__name", "number")
        names = [f"{name}@{number}" for name, number in known[:MAX_COMPARED_NAMES]]
        near = near_misses(reference, names)
        raise NotFoundError("dataset-version-not-found", reference=shown(reference), near=near)
    return version
