"""The merge checked by itself (DESIGN section 6, MISSION E2): tensors, logits, and the cause of a difference.

Two things are compared. Every tensor is computed anew in float64 and compared with the merged one: this
finds a wrong merge however small its effect. The teacher-forced logits of the merged model are compared with
those of base + adapter in peft, in fp32: this finds what the plan itself got wrong, since peft reads the
adapter in its own way.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from registry.artifacts.adapter_folder import WEIGHTS_FILE
from training.engine.merge.logit_check import (
    LayerDifference,
    LogitReport,
    compare_layers,
    load_pair,
    verify_logits,
)
from training.engine.merge.plan import plan_merge
from training.engine.merge.tensor_check import (
    TensorChecker,
    TensorFiles,
    TensorState,
    TensorVerdict,
    name_factor,
)

MAX_KL_FRACTION = 0.5
"""The merged model may be at most this part of the adapter's own effect away from it: what rounding to bf16
does to a weakly trained adapter stays below; a scale that is off by two does not."""

NEGLIGIBLE_KL_NATS = 1e-4
"""A difference below this is none, whatever the adapter's effect."""

_MAX_NAMED = 5
_CAUSES = {
    "merged-twice": "the delta was added twice",
    "scale-root-of-rank": "the scale is alpha / sqrt(r) where the adapter's is alpha / r",
    "scale-rank-instead-of-root": "the scale is alpha / r where the adapter's is alpha / sqrt(r)",
    "scale-left-out": "the delta was added without its scale",
    "scale-not-divided": "the scale is alpha, not divided by the rank",
    "delta-subtracted": "the delta was subtracted",
    "scale-off": "the delta was added with another scale",
    "delta-transposed": "the delta was added transposed",
    "delta-rounded": "the delta or its factors were rounded before the addition",
    "magnitude-left-out": "DoRA's magnitudes were left out",
    "module-unmatched": "the delta was not added: the module's name was not matched",
    "stale-shard": "a whole weight file is not from this merge",
    "wrong-base": "the merge started from another base model",
    "unexplained": "no known mistake gives these values",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A likely cause of a difference.

    Attributes:
        code: Stable name, a key of the causes known here.
        message: What went wrong.
        num_tensors: Tensors that it explains.
        tensors: The first of them.
    """

    code: str
    message: str
    num_tensors: int
    tensors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeVerification:
    """What the verification found.

    Attributes:
        is_sound: Whether every tensor is the expected one (one unit in the last place aside) and the logits
            agree.
        logits: The comparison of the logits; None when no prompts were given.
        num_tensors: Changed tensors compared.
        num_wrong_tensors: Those that are not as expected.
        num_wrong_untouched: Tensors that were not to be changed and differ from the base's, or are missing.
        max_off_fraction: Largest part of a right tensor's elements that lie one unit in the last place off,
            0-1.
        causes: Likely causes, the one that explains most first; empty when sound.
        layers: How far hidden states differ, layer by layer; empty when sound or without prompts.
    """

    is_sound: bool
    logits: LogitReport | None
    num_tensors: int
    num_wrong_tensors: int
    num_wrong_untouched: int
    max_off_fraction: float
    causes: tuple[Cause, ...]
    layers: tuple[LayerDifference, ...]

    def to_values(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        return asdict(self)


def verify_merge(
    *, base_model: Path, adapter: Path, merged: Path, prompts: Sequence[str]
) -> MergeVerification:
    """Check a merged model against its base and adapter.

    Holds one tensor in float64 and, with prompts, two copies of the model in fp32.

    Args:
        base_model: Hugging Face folder.
        adapter: PEFT folder.
        merged: The merged model's folder.
        prompts: Texts for the logits; none leaves the logits out, for a model that does not fit twice.

    Raises:
        MergeRefused: The adapter does not fit the base at all (see `plan_merge`).
        BaseModelUnavailable: A model cannot be loaded.
    """
    plan = plan_merge(base_model, adapter)
    shards = plan.base.shards
    base = TensorFiles(base_model, shards)
    checker = TensorChecker(base, TensorFiles(adapter, [WEIGHTS_FILE]), TensorFiles(merged, shards))
    verdicts = [checker.check(change) for change in plan.changes.changes]
    touched = {change.target for change in plan.changes.changes}
    strays = [name for name in plan.base.tensors if name not in touched and not checker.is_untouched(name)]
    causes = list(_find_causes(verdicts, strays, base))
    logits: LogitReport | None = None
    layers: tuple[LayerDifference, ...] = ()
    if prompts:
        pair = load_pair(
            base_model=base_model,
            adapter=adapter,
            merged=merged,
            vocab_size=plan.changes.embedding.vocab_size,
        )
        logits = verify_logits(pair, prompts=prompts)
        if causes or not _agrees(logits):
            layers = compare_layers(pair, prompts=prompts)
    if logits is not None and not _agrees(logits) and not causes:
        causes = [_cause("unexplained", ["the logits"])]
    right = [verdict.off_fraction for verdict in verdicts if verdict.state is TensorState.RIGHT]
    return MergeVerification(
        is_sound=not causes,
        logits=logits,
        num_tensors=len(verdicts),
        num_wrong_tensors=len(verdicts) - len(right),
        num_wrong_untouched=len(strays),
        max_off_fraction=max(right, default=0.0),
        causes=tuple(causes),
        layers=layers,
    )


def _agrees(logits: LogitReport) -> bool:
    limit = max(NEGLIGIBLE_KL_NATS, MAX_KL_FRACTION * logits.base_mean_kl_divergence)
    return logits.mean_kl_divergence <= limit


def _find_causes(verdicts: Sequence[TensorVerdict], strays: Sequence[str], base: TensorFiles) -> list[Cause]:
    wrong = [verdict for verdict in verdicts if verdict.state is not TensorState.RIGHT]
    if not wrong and not strays:
        return []
    stale = _stale_shards(verdicts, strays, base)
    named: dict[str, list[str]] = {}
    for verdict in wrong:
        if base.shard_of.get(verdict.name) in stale:
            named.setdefault("stale-shard", []).append(verdict.name)
        else:
            for code in _codes(verdict, has_strays=bool(strays)):
                named.setdefault(code, []).append(verdict.name)
    for name in strays:
        code = "stale-shard" if base.shard_of.get(name) in stale else "wrong-base"
        named.setdefault(code, []).append(name)
    causes = [_cause(code, names) for code, names in named.items()]
    return sorted(causes, key=lambda cause: (-cause.num_tensors, cause.code))


def _codes(verdict: TensorVerdict, *, has_strays: bool) -> list[str]:
    if verdict.state is TensorState.SCALED:
        return name_factor(verdict) or ["scale-off"]
    return [
        {
            TensorState.UNCHANGED: "module-unmatched",
            TensorState.TRANSPOSED: "delta-transposed",
            TensorState.ROUNDED: "delta-rounded",
            TensorState.WITHOUT_MAGNITUDE: "magnitude-left-out",
        }.get(verdict.state, "wrong-base" if has_strays else "unexplained")
    ]


def _stale_shards(
    verdicts: Sequence[TensorVerdict], strays: Sequence[str], base: TensorFiles
) -> frozenset[str]:
    """Return the weight files that are wrong as a whole while others are right.

    One of several files; in it every changed tensor, and more than one, is the base's own or something else
    altogether.
    """
    wrong_states = {TensorState.UNCHANGED, TensorState.OTHER}
    total: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for verdict in verdicts:
        shard = base.shard_of.get(verdict.name, "")
        total[shard] += 1
        wrong[shard] += verdict.state in wrong_states
    stale = {shard for shard, count in wrong.items() if count == total[shard] > 1}
    others_are_right = any(
        verdict.state is TensorState.RIGHT and base.shard_of.get(verdict.name) not in stale
        for verdict in verdicts
    )
    stray_shards = {base.shard_of[name] for name in strays if name in base.shard_of}
    return frozenset(stale) if others_are_right and stray_shards <= stale else frozenset()


def _cause(code: str, names: Sequence[str]) -> Cause:
    return Cause(code=code, message=_CAUSES[code], num_tensors=len(names), tensors=tuple(names[:_MAX_NAMED]))
