"""Rows by name, with near misses in the error when there is none."""

from typing import TypeVar

from django.db.models import Model, QuerySet

from registry.artifacts.findings import shown
from registry.errors import NotFoundError
from registry.models.fields import MAX_NAME_LENGTH
from registry.services.names import find_name_fault, near_misses

Row = TypeVar("Row", bound=Model)
MAX_COMPARED_NAMES = 1000


def get_by_name(rows: QuerySet[Row, Row], name: str, *, code: str) -> Row:
    """The row of that name.

    Raises:
        NotFoundError: there is none; names that are near are told.
    """
    # PostgreSQL refuses to compare with a text that holds NUL, so only names of the right form are looked up.
    row = rows.filter(name=name).first() if find_name_fault(name, where="name") is None else None
    if row is None:
        known = rows.order_by("name").values_list("name", flat=True)[:MAX_COMPARED_NAMES]
        raise NotFoundError(code, name=shown(name), near=near_misses(name[:MAX_NAME_LENGTH], known))
    return row
