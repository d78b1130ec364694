"""The merge job: base model and adapter in, merged model folder out, complete or absent (MISSION E1)."""

import hashlib
import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from registry.artifacts.adapter_config import CONFIG_FILE
from registry.artifacts.adapter_folder import WEIGHTS_FILE
from training.engine.atomic_folder import atomic_folder
from training.engine.errors import MergeRefused
from training.engine.merge.adapter_reader import AdapterReader
from training.engine.merge.companion_files import (
    PROVENANCE_FILE,
    copy_companion_files,
    write_config,
    write_index,
)
from training.engine.merge.plan import MergePlan, plan_merge
from training.engine.merge.shards import BaseFiles, MergedTensor, verify_shard, write_merged_shard
from training.engine.progress import ProgressReporter

MERGE_CODE_VERSION = "merge@2"
"""Part of the key of a merged model: raised when the same inputs would give other bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """What a merge did.

    Attributes:
        num_touched_tensors: Tensors that are not the base's.
        num_untouched_tensors: Tensors that are the base's, byte for byte.
        num_adapter_tensors: Tensors of the adapter, each accounted for.
        max_abs_delta: Largest absolute change of a weight, before rounding.
        min_changed_fraction: The smallest part of an adapted weight's elements that changed after rounding,
            0-1: near 0 means that the adapter is too small for the base's dtype. Experts that are stored
            singly are left out, since one that was never chosen stays as it was.
        is_untied: Whether the output layer got a tensor of its own.
        vocab_size: New number of rows of the embeddings; None when it is the base's.
        size_bytes: Length of the merged weight files.
        duration_seconds: Of the whole merge.
    """

    num_touched_tensors: int
    num_untouched_tensors: int
    num_adapter_tensors: int
    max_abs_delta: float
    min_changed_fraction: float
    is_untied: bool
    vocab_size: int | None
    size_bytes: int
    duration_seconds: float

    def to_values(self) -> dict[str, float | int | None]:
        """Return the result as JSON values."""
        return asdict(self)


def run_merge(*, base_model: Path, adapter: Path, output: Path, report: ProgressReporter) -> MergeResult:
    """Merge a LoRA adapter into its base model in fp32 and store the result in the base's dtypes.

    Sharding, tensor names, tokenizer, chat template, generation configuration and licence are the base's; the
    configuration too, but for a resized vocabulary and an output layer that is no longer tied. The same
    inputs give the same bytes on the same machine.

    Args:
        base_model: Hugging Face folder with safetensors.
        adapter: PEFT folder: adapter_config.json and adapter_model.safetensors.
        output: Folder to create.
        report: Receives progress.

    Raises:
        MergeRefused: The adapter is not merged exactly or does not fit (see `plan_merge`), is not finite
            (``adapter-not-finite``), leaves a weight as it was (``adapter-tensor-without-effect``), holds
            different values for one matrix (``tied-weights-differ``), or gives values that the dtype cannot
            hold (``merge-not-finite``).
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

    embedding = plan.changes.embedding
    for first, second in embedding.equal_pairs:
        reader.require_equal(first, second)
    files = BaseFiles.read(base_model, plan.base.shards)
    with atomic_folder(output) as partial:
        headers = {
            shard: write_merged_shard(files, shard, partial / shard, changes, reader, on_tensor=on_tensor)
            for shard, changes in plan.changes_by_shard.items()
        }
        _require_effect_of_experts(plan, merged)
        report.progress(0.85, "reading the merged files back")
        for shard, changes in plan.changes_by_shard.items():
            verify_shard(base_model / shard, partial / shard, headers[shard], changes)
        names = copy_companion_files(base_model, partial)
        write_index(base_model, partial, headers)
        write_config(partial, vocab_size=embedding.vocab_size, is_untied=embedding.is_untied)
        _write_provenance(partial, adapter, plan, merged)
        report.log("info", f"copied from the base model: {', '.join(names)}")
    report.progress(1.0, "merged")
    fractions = [tensor.changed_fraction for tensor in merged if not tensor.is_one_expert]
    adapted = [t.changed_fraction for t in merged if t.is_adapted and not t.is_one_expert]
    touched = {tensor.name for tensor in merged}
    return MergeResult(
        num_touched_tensors=len(merged),
        num_untouched_tensors=len(plan.base.tensors.keys() - touched),
        num_adapter_tensors=plan.num_adapter_tensors,
        max_abs_delta=max(tensor.max_abs_delta for tensor in merged),
        min_changed_fraction=min(adapted or fractions or [tensor.changed_fraction for tensor in merged]),
        is_untied=embedding.is_untied,
        vocab_size=embedding.vocab_size,
        size_bytes=sum(header.file_bytes for header in headers.values()),
        duration_seconds=time.monotonic() - begun,
    )


def _require_effect_of_experts(plan: MergePlan, merged: list[MergedTensor]) -> None:
    """Refuse a pair on experts that are stored singly when it changes none of them."""
    changed = {tensor.name for tensor in merged if tensor.changed_fraction}
    effects: dict[str, bool] = {}
    for change in plan.changes.changes:
        if change.pair is not None and change.expert is not None:
            name = change.pair.base_tensor
            effects[name] = effects.get(name, False) or change.target in changed
    silent = sorted(name for name, has_effect in effects.items() if not has_effect)
    if silent:
        raise MergeRefused(
            "adapter-tensor-without-effect",
            f"The adapter does not change any expert of {silent[0]}: its lora_B is zero, or the change is "
            "lost in "
            "rounding. It was not trained, or saved before training.",
        )


def _write_provenance(output: Path, adapter: Path, plan: MergePlan, merged: list[MergedTensor]) -> None:
    """Write where the weights come from; no times or paths, so that equal merges have equal bytes."""
    provenance = {
        "schema_version": 1,
        "code_version": MERGE_CODE_VERSION,
        "arithmetic": "base, A and B in float32, one addition, one rounding to the base tensor's dtype",
        "embeddings": {
            "is_untied": plan.changes.embedding.is_untied,
            "vocab_size": plan.changes.embedding.vocab_size,
        },
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
