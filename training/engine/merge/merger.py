"""The merge job: base model and adapter in, merged model folder out, complete or absent (MISSION E1)."""

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from registry.artifacts.adapter_config import CONFIG_FILE
from registry.artifacts.adapter_folder import WEIGHTS_FILE
from training.engine.atomic_folder import atomic_folder
from training.engine.merge.companion_files import PROVENANCE_FILE, copy_companion_files, write_index
from training.engine.merge.plan import MergePlan, plan_merge
from training.engine.merge.shards import AdapterReader, MergedTensor, verify_shard, write_merged_shard
from training.engine.progress import ProgressReporter

MERGE_CODE_VERSION = "merge@1"
"""Part of the key of a merged model: raised when the same inputs would give other bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """What a merge did.

    Attributes:
        num_touched_tensors: Weights that changed.
        num_untouched_tensors: Tensors that are the base's, byte for byte.
        num_adapter_tensors: Tensors of the adapter, each used exactly once.
        max_abs_delta: Largest absolute change of a weight, before rounding.
        min_changed_fraction: The smallest part of a touched weight's elements that changed after rounding,
            0-1: near 0 means that the adapter is too small for the base's dtype.
        size_bytes: Length of the merged weight files.
        duration_seconds: Of the whole merge.
    """

    num_touched_tensors: int
    num_untouched_tensors: int
    num_adapter_tensors: int
    max_abs_delta: float
    min_changed_fraction: float
    size_bytes: int
    duration_seconds: float

    def to_values(self) -> dict[str, float | int]:
        """Return the result as JSON values."""
        return asdict(self)


def run_merge(*, base_model: Path, adapter: Path, output: Path, report: ProgressReporter) -> MergeResult:
    """Merge a LoRA adapter into its base model in fp32 and store the result in the base's dtypes.

    Sharding, tensor names, tokenizer, chat template, generation configuration and licence are the base's. The
    same inputs give the same bytes on the same machine.

    Args:
        base_model: Hugging Face folder with safetensors.
        adapter: PEFT folder: adapter_config.json and adapter_model.safetensors.
        output: Folder to create.
        report: Receives progress.

    Raises:
        MergeRefused: The adapter is not merged exactly or does not fit (see `plan_merge`), is not finite
            (``adapter-not-finite``), leaves a weight as it was (``adapter-tensor-without-effect``), or gives
            values that the dtype cannot hold (``merge-not-finite``).
        MergeFailed: A check of the written files failed: ours to mend.
        BaseModelError: The base model's folder is at fault (registry.artifacts).
        FileExistsError: If ``output`` exists and is not empty.
    """
    begun = time.monotonic()
    report.progress(0.0, "matching the adapter's tensors with the base model")
    plan = plan_merge(base_model, adapter)
    reader = AdapterReader(adapter / WEIGHTS_FILE)
    merged: list[MergedTensor] = []

    def on_tensor(tensor: MergedTensor) -> None:
        merged.append(tensor)
        fraction = 0.05 + 0.75 * len(merged) / plan.num_touched_tensors
        report.progress(fraction, f"merged {len(merged)} of {plan.num_touched_tensors} weights")

    with atomic_folder(output) as partial:
        for shard, modules in plan.modules_by_shard.items():
            write_merged_shard(base_model / shard, partial / shard, modules, reader, on_tensor=on_tensor)
        report.progress(0.85, "reading the merged files back")
        for shard, modules in plan.modules_by_shard.items():
            touched = frozenset(module.base_tensor for module in modules)
            verify_shard(base_model / shard, partial / shard, touched)
        names = copy_companion_files(base_model, partial)
        write_index(base_model, partial, plan.base)
        _write_provenance(partial, adapter, plan, merged)
        report.log("info", f"copied from the base model: {', '.join(names)}")
    report.progress(1.0, "merged")
    return MergeResult(
        num_touched_tensors=len(merged),
        num_untouched_tensors=len(plan.base.tensors) - len(merged),
        num_adapter_tensors=plan.num_adapter_tensors,
        max_abs_delta=max(tensor.max_abs_delta for tensor in merged),
        min_changed_fraction=min(tensor.changed_fraction for tensor in merged),
        size_bytes=plan.base.size_bytes,
        duration_seconds=time.monotonic() - begun,
    )


def _write_provenance(output: Path, adapter: Path, plan: MergePlan, merged: list[MergedTensor]) -> None:
    """Write where the weights come from; no times or paths, so that equal merges have equal bytes."""
    provenance = {
        "schema_version": 1,
        "code_version": MERGE_CODE_VERSION,
        "arithmetic": "base, A and B in float32, one addition, one rounding to the base tensor's dtype",
        "adapter": {name: _sha256(adapter / name) for name in (CONFIG_FILE, WEIGHTS_FILE)},
        "base": {
            "architectures": list(plan.base.architectures),
            "dtype": plan.base.dtype,
            "weight_files": list(plan.base.shards),
            "size_bytes": plan.base.size_bytes,
        },
        "touched_tensors": sorted(tensor.name for tensor in merged),
    }
    (output / PROVENANCE_FILE).write_text(
        json.dumps(provenance, indent=2, sort_keys=True) + "\n", encoding="utf-8"
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
