"""Dividing clean examples into sets: cutting the holdout set, mixing in general data."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.engine.data.example_files import WrittenFile, copy_examples, iterate_examples, write_examples
from training.engine.data.jsonl import list_jsonl_files, read_examples
from training.engine.data.mixing import mix_files
from training.engine.data.recipe import MixSettings, Recipe, SplitSettings
from training.engine.data.splitting import plan_split
from training.engine.errors import DataInvalid

HOLDOUT = "holdout"


@dataclass(frozen=True, slots=True, kw_only=True)
class MixPools:
    """Ready data to draw from.

    Attributes:
        general: JSONL file or folder; None when there is none.
        unchanged: Likewise.
    """

    general: Path | None
    unchanged: Path | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Division:
    """The sets and how they came about.

    Attributes:
        sets: The file of each set by its role; the main set first.
        split: Report of the cut; None when there was none.
        mix: Report of the mix; None when there was none.
    """

    sets: Mapping[str, WrittenFile]
    split: Mapping[str, Any] | None
    mix: Mapping[str, Any] | None


def divide(cleaned: WrittenFile, *, pools: MixPools, recipe: Recipe, target: Path, scratch: Path) -> Division:
    """Write the sets of a recipe.

    Args:
        cleaned: Clean examples.
        pools: What a mix draws from.
        recipe: Says what to cut and mix.
        target: Folder for ``<role>.jsonl``.
        scratch: For what is between.

    Raises:
        DataInvalid: a side of the cut is empty, or the mix draws from data that was not given.
    """
    main, sets = cleaned, {}
    split_report = mix_report = None
    if recipe.split is not None:
        main, sets[HOLDOUT], split_report = _cut(main, recipe.split, recipe.seed, target, scratch)
    if recipe.mix is not None:
        main, mix_report = _mix(main, recipe.mix, recipe.seed, pools, scratch)
    final = copy_examples(main, target / f"{recipe.role}.jsonl")
    return Division(sets={recipe.role: final, **sets}, split=split_report, mix=mix_report)


def _cut(
    source: WrittenFile, settings: SplitSettings, seed: int, target: Path, scratch: Path
) -> tuple[WrittenFile, WrittenFile, Mapping[str, Any]]:
    plan = plan_split(
        iterate_examples(source.path),
        holdout_fraction=settings.holdout_fraction,
        seed=seed,
        stratify_by=settings.stratify_by,
        group_by=settings.group_by,
        threshold=settings.threshold,
    )
    num_held_out = len(plan.holdout_ids)
    if not 0 < num_held_out < source.num_examples:
        raise DataInvalid(
            "split-impossible",
            f"{num_held_out} of {source.num_examples} examples can be held out: there are too few, or groups "
            "and near duplicates bind too many together. The report of the cut says which.",
        )

    def side(is_holdout: bool) -> WrittenFile:
        path = target / f"{HOLDOUT}.jsonl" if is_holdout else scratch / "split-train.jsonl"
        chosen = (
            example
            for example in iterate_examples(source.path)
            if (example.example_id in plan.holdout_ids) is is_holdout
        )
        return write_examples(path, chosen)

    return side(False), side(True), plan.report.to_json()


def _mix(
    source: WrittenFile, settings: MixSettings, seed: int, pools: MixPools, scratch: Path
) -> tuple[WrittenFile, Mapping[str, Any]]:
    if settings.general_fraction and pools.general is None:
        raise DataInvalid(
            "general-data-missing",
            f"The recipe mixes in {settings.general_fraction:g} general data, but none was given.",
        )
    written, report = mix_files(
        source.path,
        target=scratch / "mixed.jsonl",
        general=_pool(pools.general, scratch / "general.jsonl"),
        unchanged=_pool(pools.unchanged, scratch / "unchanged.jsonl"),
        general_fraction=settings.general_fraction,
        unchanged_fraction=settings.unchanged_fraction,
        balance_by=settings.balance_by,
        max_repeats=settings.max_repeats,
        seed=seed,
    )
    return written, report.to_json()


def _pool(source: Path | None, target: Path) -> Path | None:
    """Bring ready data into the form between stages; foreign lines are checked on the way."""
    if source is None:
        return None
    examples = (
        example for file in list_jsonl_files(source) for example in read_examples(file, needs_answer=False)
    )
    return write_examples(target, examples).path
