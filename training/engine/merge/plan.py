"""What a merge will change: the base's tensors and the adapter's pairs, matched by the registry's intake
check.

The matching is that of `registry.artifacts.adapter_check`, so that intake and merge can never disagree on
what an adapter means. Works on headers: no values are read.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from registry.artifacts.adapter_check import check_adapter
from registry.artifacts.adapter_folder import WEIGHTS_FILE
from registry.artifacts.adapter_tensors import AdapterModule
from registry.artifacts.base_model import BaseModelSummary, read_base_model
from registry.artifacts.findings import Severity
from registry.artifacts.safetensors_header import read_header
from training.engine.errors import Fault, MergeFailed, MergeRefused


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan:
    """Which pair goes into which tensor of which file.

    Attributes:
        base: The base model's files and tensors.
        modules_by_shard: For each weight file of the base, the adapted weights in it; empty for untouched
            files.
        num_adapter_tensors: Tensors in the adapter's file; each is consumed exactly once.
    """

    base: BaseModelSummary
    modules_by_shard: Mapping[str, Sequence[AdapterModule]]
    num_adapter_tensors: int

    @property
    def num_touched_tensors(self) -> int:
        """Weights of the base that change."""
        return sum(len(modules) for modules in self.modules_by_shard.values())


def plan_merge(base_model: Path, adapter: Path) -> MergePlan:
    """Match an adapter with a base model.

    Raises:
        MergeRefused: The adapter asks for something that is not merged exactly (DoRA, biases, whole modules,
            embeddings, changed initial weights, ...) or does not fit; ``code`` is that of the first fault,
            for example ``adapter-dora``, and ``faults`` holds all of them.
        MergeFailed: ``merge-tensor-unaccounted``, if an accepted adapter has a tensor that no weight
            consumes.
        BaseModelError: The base model's folder is at fault (registry.artifacts).
    """
    check = check_adapter(adapter, base_model)
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
    modules_by_shard: dict[str, list[AdapterModule]] = {shard: [] for shard in base.shards}
    for module in check.modules:
        modules_by_shard[base.tensors[module.base_tensor].shard].append(module)
    return MergePlan(
        base=base,
        modules_by_shard=modules_by_shard,
        num_adapter_tensors=_count_consumed_once(check.modules, adapter),
    )


def _count_consumed_once(modules: Sequence[AdapterModule], adapter: Path) -> int:
    """Return the number of tensors in the file, after checking that each is used by exactly one weight."""
    uses: defaultdict[str, int] = defaultdict(int)
    for module in modules:
        uses[module.tensor_a] += 1
        uses[module.tensor_b] += 1
    names = read_header(adapter / WEIGHTS_FILE).tensors.keys()
    wrong = sorted(name for name in names | uses.keys() if uses.get(name, 0) != 1 or name not in names)
    targets = {module.base_tensor for module in modules}
    if wrong or len(targets) != len(modules):
        raise MergeFailed(
            "merge-tensor-unaccounted",
            f"{len(wrong)} tensors of the adapter would not be used exactly once: {', '.join(wrong[:3])}.",
        )
    return len(names)
