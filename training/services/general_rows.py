"""Finds general instruction data to add to a run, and takes as much of it as is needed (MISSION C4, F8)."""

import hashlib
import heapq
import json
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

from registry.artifacts.digests import digest_json
from registry.artifacts.stores.base import PutMode
from registry.choices import ArtifactKind, DatasetRole
from registry.errors import Fault
from registry.models import DatasetVersion
from registry.models.fields import MAX_NAME_LENGTH
from registry.selectors.datasets import list_datasets
from registry.services.actors import Actor
from registry.services.artifacts import ingest_folder
from registry.services.datasets import DATA_FILE, register_dataset_version
from training.engine.remedies import RAISED_GENERAL_FRACTION, count_general_rows
from training.errors import TrainingInvalid
from training.services.dataset_lookups import find_dataset
from training.services.reviews import iterate_lines
from training.services.run_lint import count_general

PART_OF = "part_of"
"""Key of a card: the version that a part was taken from."""
_PART_SUFFIX = "-part"
_WHERE = "/general_dataset"


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedGeneral:
    """General data for a run.

    Attributes:
        version: To be added to the run's datasets.
        what: What was added, in a sentence with the numbers.
    """

    version: DatasetVersion
    what: str


def add_general_rows(
    *, datasets: Sequence[DatasetVersion], reference: str | None, actor: Actor
) -> AddedGeneral:
    """Finds the general data that raises its share in a run's data to 15 %.

    The examples are taken by the digest of their lines, so that the same data gives the same part again;
    those whose messages the run has as general data already are passed over. A part of a version becomes
    a version of its own.

    Args:
        datasets: Of the run.
        reference: "name@number" of the general dataset version to take from; None takes the smallest
            registered one that has enough.
        actor: In whose name a part is registered; may submit.

    Raises:
        TrainingInvalid: the share is that high already (`remedy-not-applicable`), or no such version has
            enough examples (`general-data-missing`).
    """
    num_general = sum(count_general(version) for version in datasets)
    num_task = sum(version.num_examples for version in datasets) - num_general
    num_needed = count_general_rows(num_task=num_task, num_general=num_general)
    if not num_needed:
        share = num_general / max(1, num_task + num_general)
        message = f"{share:.1%} of the examples are general already; try the next remedy."
        raise _refused("remedy-not-applicable", message, "/remedy")
    source = _find_source(datasets, reference, num_needed, num_task, num_general)
    lines = _choose_lines(source, num_needed, _known_messages(datasets))
    if len(lines) < num_needed:
        message = (
            f"{num_needed} more general examples are needed and {source} has {len(lines)} that the run does "
            "not have already. Name another dataset version as general_dataset."
        )
        raise _refused("general-data-missing", message, _WHERE)
    version = source if num_needed == source.num_examples else _register_part(source, lines, actor)
    what = (
        f"{num_needed} general examples of {source} are added to {num_general}, so that "
        f"{RAISED_GENERAL_FRACTION:.0%} of all are general."
    )
    return AddedGeneral(version=version, what=what)


def _find_source(
    datasets: Sequence[DatasetVersion],
    reference: str | None,
    num_needed: int,
    num_task: int,
    num_general: int,
) -> DatasetVersion:
    if reference is not None:
        faults: list[Fault] = []
        named = find_dataset(faults, reference, _WHERE, (DatasetRole.GENERAL,))
        if named is None:
            raise TrainingInvalid("variation-invalid", faults=faults)
        return named
    used = {version.artifact_id for version in datasets}
    candidates = [version for version in _latest_general_versions() if version.artifact_id not in used]
    fitting = [version for version in candidates if version.num_examples >= num_needed]
    if fitting:
        return min(fitting, key=lambda version: (version.num_examples, str(version)))
    largest = max(candidates, key=lambda version: version.num_examples, default=None)
    there = (
        f"the largest general dataset outside this run, {largest}, has {largest.num_examples}"
        if largest is not None
        else "there is no general dataset outside this run"
    )
    message = (
        f"The run has {num_task} examples of the task and {num_general} general ones; {num_needed} more "
        f"general ones are needed for {RAISED_GENERAL_FRACTION:.0%}, and {there}. Register more with: assay "
        "dataset push NAME FILE --role general."
    )
    raise _refused("general-data-missing", message, _WHERE)


def _latest_general_versions() -> list[DatasetVersion]:
    """The newest version of every general dataset that is not itself a part of one."""
    datasets = list_datasets(role=DatasetRole.GENERAL)
    versions = DatasetVersion.objects.filter(dataset__in=datasets).select_related("dataset")
    latest: dict[int, DatasetVersion] = {}
    for version in versions.order_by("dataset_id", "number"):
        if PART_OF not in version.card:
            latest[version.dataset_id] = version
    return list(latest.values())


def _known_messages(datasets: Sequence[DatasetVersion]) -> frozenset[str]:
    general = [version for version in datasets if version.dataset.role == DatasetRole.GENERAL]
    return frozenset(_digest_messages(line) for version in general for line in _iterate_lines(version))


def _choose_lines(source: DatasetVersion, num: int, known: frozenset[str]) -> list[str]:
    """The lines whose digests are smallest, in the order of the file."""
    numbered = (
        (hashlib.sha256(line.encode()).digest(), position, line)
        for position, line in enumerate(_iterate_lines(source))
        if not known or _digest_messages(line) not in known
    )
    chosen = heapq.nsmallest(num, numbered)
    return [line for _, position, line in sorted(chosen, key=lambda item: item[1])]


def _iterate_lines(version: DatasetVersion) -> Iterator[str]:
    return (line for _, line in iterate_lines(version))


def _digest_messages(line: str) -> str:
    return digest_json(json.loads(line).get("messages"))


def _register_part(source: DatasetVersion, lines: Sequence[str], actor: Actor) -> DatasetVersion:
    root = Path(settings.WORK_ROOT)
    root.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="general-", dir=root) as name:
        folder = Path(name)
        with (folder / DATA_FILE).open("w", encoding="utf-8", newline="") as file:
            file.writelines(f"{line}\n" for line in lines)
        artifact = ingest_folder(folder=folder, kind=ArtifactKind.DATASET, actor=actor, mode=PutMode.MOVE)
    version, _ = register_dataset_version(
        name=f"{source.dataset.name[: MAX_NAME_LENGTH - len(_PART_SUFFIX)]}{_PART_SUFFIX}",
        role=DatasetRole.GENERAL,
        artifact_digest=artifact.digest,
        actor=actor,
        card={PART_OF: {"version": str(source), "artifact": source.artifact_id}},
    )
    return version


def _refused(code: str, message: str, where: str) -> TrainingInvalid:
    return TrainingInvalid(code, message, faults=[Fault(code=code, message=message, where=where)])
