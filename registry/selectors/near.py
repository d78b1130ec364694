"""Rows by name, with near misses in the error when there is none."""

from typing import TypeVar

from django.db.models import Model, QuerySet

from registry.artifacts.findings import shown
from registry.errors import NotFoundError
from registry.services.names import near_misses

Row = TypeVar("Row", bound=Model)
MAX_COMPARED_NAMES = 1000


def get_by_name(rows: QuerySet[Row, Row], name: str, *, code: str) -> Row:
    """The row of that name.

    Raises:
        NotFoundError: there is none; names that are near are told.
    """
    row = rows.filter(name=name).first()
    if row is None:
        known = rows.order_by("name").values_list("name", flat=True)[:MAX_COMPARED_NAMES]
        raise NotFoundError(code, name=shown(name), near=near_misses(name[:96], known))
    return row
