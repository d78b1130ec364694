"""Reads of base models."""

from django.db.models import QuerySet

from registry.models import BaseModel
from registry.selectors.near import get_by_name


def list_base_models() -> QuerySet[BaseModel, BaseModel]:
    """All base models with their artifacts."""
    return BaseModel.objects.select_related("artifact")


def get_base_model(name: str) -> BaseModel:
    """The base model of that name.

    Raises:
        NotFoundError: there is none.
    """
    return get_by_name(list_base_models(), name, code="base-model-not-found")
