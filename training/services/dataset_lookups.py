"""Looking up what a request names, so that every fault comes back with its place."""

import functools
import re
from collections.abc import Iterator, Sequence

from registry.errors import Fault
from registry.models import DatasetVersion
from registry.selectors.datasets import get_dataset_version
from registry.services.lookups import look_up
from training.engine.errors import ConfigInvalid

_INDEX = re.compile(r"\[(\d+)\]")


def find_dataset(
    faults: list[Fault], reference: str, where: str, roles: Sequence[str]
) -> DatasetVersion | None:
    """The dataset version that `name@number` names; None, with its reason added to the faults, when there is
    none or it has none of the roles.
    """
    version = look_up(faults, where, functools.partial(get_dataset_version, reference, where=where))
    if version is not None and version.dataset.role not in roles:
        message = f"{version} has role {version.dataset.role!r}; {' or '.join(roles)} is needed here."
        faults.append(Fault(code="dataset-role-differs", message=message, where=where))
        return None
    return version


def config_faults(error: ConfigInvalid, *, below: str) -> Iterator[Fault]:
    """The faults of settings with their places as JSON pointers: `clean[2].threshold` below `/recipe` is
    `/recipe/clean/2/threshold`, and so is `recipe.clean[2].threshold`.
    """
    own_name = f"{below.strip('/')}."
    for fault in error.faults:
        place = _INDEX.sub(r"/\1", fault.where.removeprefix(own_name)).replace(".", "/")
        yield Fault(
            code=fault.code, message=fault.message, where=f"{below}/{place}", remedy=fault.remedy or None
        )
