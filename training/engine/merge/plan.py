"""What a merge will change: the base's tensors and the adapter's pairs, matched by the registry's intake
check.

The matching is that of `registry.artifacts.adapter_check`, so that intake and merge can never disagree on
what an adapter means. Works on headers: no values are read.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from registry.artifacts.adapter_changes import ChangeSet, TensorChange
from registry.artifacts.adapter_check import check_adapter
from registry.artifacts.adapter_folder import WEIGHTS_FILE
from registry.artifacts.base_model import BaseModelSummary, read_base_model
from registry.artifacts.findings import Severity
from registry.artifacts.safetensors_header import read_header
from training.engine.errors import Fault, MergeFailed, MergeRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """Which change goes into which file.

    Attributes:
        base: The base model's files and tensors.
        changes: Everything that the adapter changes.
        changes_by_shard: For each weight file of the base, the changes to its tensors; empty for untouched
            files. An output layer that gets a tensor of its own goes into the embedding's file.
        num_adapter_tensors: Tensors in the adapter's file; each is accounted for.
    """

    base: BaseModelSummary
    changes: ChangeSet
    changes_by_shard: Mapping[str, Sequence[TensorChange]]
    num_adapter_tensors: int

    @property
    def num_touched_tensors(self) -> int:
        """Tensors of the merged model that are not the base's."""
        return sum(len(changes) for changes in self.changes_by_shard.values())


def plan_merge(base_model: Path, adapter: Path) -> MergePlan:
    """Match an adapter with a base model.

    Raises:
        MergeRefused: The adapter asks for something that is not merged exactly (KaSA, layer replication,
            changed initial weights, ...) or does not fit; ``code`` is that of the first fault, for example
            ``adapter-kasa``, and ``faults`` holds all of them.
        MergeFailed: ``merge-tensor-unaccounted``, if an accepted adapter has a tensor that no weight
            consumes.
        BaseModelError: The base model's folder is at fault (registry.artifacts).
    """
    check = check_adapter(adapter, base_model, is_adapter_form_needed=False)
    faults = [
        Fault(code=item.code, message=item.message, where=item.where or "", remedy=item.remedy or "")
        for item in check.findings
        if item.severity is Severity.ERROR
    ]
    if faults:
        first = faults[0]
        more = f" ({len(faults) - 1} more fault(s))" if len(faults) > 1 else ""
        where = f" [{first.where}]" if first.where else ""
        message = f"The adapter cannot be merged: {first.message}{where} {first.remedy}{more}"
        raise MergeRefused(first.code, message, faults=faults)
    base = read_base_model(base_model)
    by_shard: dict[str, list[TensorChange]] = {shard: [] for shard in base.shards}
    for change in check.changes.changes:
        by_shard[_shard_of(change, base)].append(change)
    return MergePlan(
        base=base,
        changes=check.changes,
        changes_by_shard=by_shard,
        num_adapter_tensors=_count_accounted(check.changes, adapter),
    )


def _shard_of(change: TensorChange, base: BaseModelSummary) -> str:
    """Return the file for a change: the tensor's own, or its source's if the base has no such tensor."""
    return base.tensors[change.target if change.target in base.tensors else change.source].shard


def _count_accounted(changes: ChangeSet, adapter: Path) -> int:
    """Return the number of tensors in the file, after checking that each is used by exactly one part."""
    uses = changes.count_uses()
    names = read_header(adapter / WEIGHTS_FILE).tensors.keys()
    wrong = sorted(name for name in names | uses.keys() if uses.get(name, 0) != 1 or name not in names)
    targets = {change.target for change in changes.changes}
    if wrong or len(targets) != len(changes.changes):
        raise MergeFailed(
            "merge-tensor-unaccounted",
            f"{len(wrong)} tensors of the adapter would not be used exactly once: {', '.join(wrong[:3])}.",
        )
    return len(names)
