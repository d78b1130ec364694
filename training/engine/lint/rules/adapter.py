"""Rules about the adapter's shape, and about what can be merged and served afterwards."""

from typing import Final

from registry.artifacts.findings import shown_list
from registry.artifacts.module_patterns import EMBEDDING_NAMES, HEAD_NAMES
from training.engine.config import DEFAULT_RANK, DEFAULT_TARGET_MODULES
from training.engine.errors import ConfigInvalid
from training.engine.layer_choice import select_layers
from training.engine.lint.findings import LintRule, Observation, explain, refuse, warn
from training.engine.lint.memory_needs import list_target_leaves, split_targets
from training.engine.lint.plan import Fact, TrainingPlan, need

ROWS_PER_RANK: Final = 60
"""r 16 with a thousand curated rows is the guide's own case (seed 002, sections 3 and 4.2): about 60 rows for
each unit of rank."""
LARGE_DATA_ROWS: Final = 10_000
"""Seed 002, section 4.2: from here on dropout may go down to 0.02 or off."""
LARGE_DATA_DROPOUT: Final = 0.02
_OLD_TARGETS: Final = frozenset({"q_proj", "v_proj"})
_ALL_PROJECTIONS: Final = ", ".join(DEFAULT_TARGET_MODULES)


def _dora(plan: TrainingPlan) -> Observation | None:
    if not plan.is_adapter or not plan.config.lora.use_dora:
        return None
    return refuse(
        "A DoRA adapter also changes the weights' magnitudes: this registry refuses to merge it, and vLLM "
        "refuses to serve it as an adapter. It can be trained, but not evaluated or promoted.",
        "Set use_dora to false.",
    )


def _layers(plan: TrainingPlan) -> Observation | None:
    if not plan.is_adapter:
        return None
    num_layers = need(plan.shape).num_layers
    try:
        layers = select_layers(plan.config.lora.layers, num_layers)
    except ConfigInvalid as error:
        return refuse(error.message, 'Set layers to "last_two_thirds" or to a range inside the model.')
    if layers is None or len(layers) < num_layers:
        return None
    return explain(
        f"lora.layers names all {num_layers} blocks of the model, so it restricts nothing.",
        "Leave layers out, or take the last two thirds against forgetting.",
    )


def _not_mergeable_target(plan: TrainingPlan) -> Observation | None:
    leaves = list_target_leaves(plan)
    embeddings = [leaf for leaf in leaves if leaf in EMBEDDING_NAMES]
    heads = [leaf for leaf in leaves if leaf in HEAD_NAMES]
    is_tied = plan.shape is not None and plan.shape.has_tied_embeddings
    if not plan.is_adapter or not (embeddings or heads):
        return None
    remedy = f"Leave {shown_list([*embeddings, *heads])} out of target_modules."
    if embeddings or is_tied:
        reason = (
            "the input embedding" if embeddings else "an output layer that is the input embedding as well"
        )
        return refuse(f"The LoRA is on {reason}, which is not merged here.", remedy)
    message = (
        f"The LoRA is on the output layer ({shown_list(heads)}); not every model class of vLLM serves that."
    )
    return warn(message, remedy)


def _unknown_target(plan: TrainingPlan) -> Observation | None:
    shape = need(plan.shape)
    leaves = [leaf for leaf in list_target_leaves(plan) if leaf not in EMBEDDING_NAMES | HEAD_NAMES]
    _, unknown = split_targets(shape, leaves)
    if not plan.is_adapter or not unknown:
        return None
    known = ", ".join(dict.fromkeys(linear.name for linear in shape.list_linear()))
    return warn(
        f"By its config.json the base has no {shown_list(unknown)}; it has {known}. The trainer refuses "
        "names that the loaded model does not have.",
        "Correct target_modules. Families whose modules have other names than Llama's are not known here.",
    )


def _old_targets(plan: TrainingPlan) -> Observation | None:
    leaves = frozenset(list_target_leaves(plan))
    if not plan.is_adapter or not leaves <= _OLD_TARGETS:
        return None
    return warn(
        f"Only {', '.join(sorted(leaves))} are adapted: the old practice. All seven projections are steadier "
        "and take some tenths of a percent of parameters more.",
        f"Set target_modules to {_ALL_PROJECTIONS}.",
    )


def _large_rank(plan: TrainingPlan) -> Observation | None:
    rank, num_rows = plan.config.lora.r, need(plan.num_rows)
    if not plan.is_adapter or rank <= DEFAULT_RANK or num_rows >= rank * ROWS_PER_RANK:
        return None
    fitting = max(DEFAULT_RANK, num_rows // ROWS_PER_RANK)
    return warn(
        f"r {rank} for {num_rows} rows: below about {rank * ROWS_PER_RANK} rows so large an adapter rather "
        "learns them by heart.",
        f"Set r to {fitting} or less, and lora_alpha with it.",
    )


def _no_dropout(plan: TrainingPlan) -> Observation | None:
    num_rows = need(plan.num_rows)
    if not plan.is_adapter or plan.config.lora.lora_dropout > 0 or num_rows >= LARGE_DATA_ROWS:
        return None
    message = f"Dropout is off with {num_rows} rows; 0.05 is a light guard against overfitting below 10,000."
    remedy = "Set lora_dropout to 0.05."
    # In a single pass no row is seen twice, so there is little to overfit to.
    return warn(message, remedy) if need(plan.num_passes) > 1 else explain(message, remedy)


def _dropout_on_large_data(plan: TrainingPlan) -> Observation | None:
    dropout, num_rows = plan.config.lora.lora_dropout, need(plan.num_rows)
    if not plan.is_adapter or dropout <= LARGE_DATA_DROPOUT or num_rows < LARGE_DATA_ROWS:
        return None
    return explain(
        f"Dropout is {dropout:g} with {num_rows} rows; from 10,000 on it only slows the training down.",
        "Set lora_dropout to 0.02 or 0.",
    )


_SHAPE: Final = frozenset({Fact.SHAPE})
_ROWS: Final = frozenset({Fact.ROWS})
RULES: Final = (
    LintRule("dora-not-mergeable", "E1, E4", "lora.use_dora", _dora),
    LintRule("layers-unsuitable", "B5", "lora.layers", _layers, _SHAPE),
    LintRule("target-not-mergeable", "E1, E4", "lora.target_modules", _not_mergeable_target),
    LintRule("target-module-unknown", "B2", "lora.target_modules", _unknown_target, _SHAPE),
    LintRule("query-and-value-only", "D1", "lora.target_modules", _old_targets),
    LintRule("rank-large-for-the-data", "D1", "lora.r", _large_rank, _ROWS),
    LintRule("dropout-off-on-small-data", "D1", "lora.lora_dropout", _no_dropout, _ROWS | {Fact.PASSES}),
    LintRule("dropout-on-large-data", "D1", "lora.lora_dropout", _dropout_on_large_data, _ROWS),
)
