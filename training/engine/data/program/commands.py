"""inspect, clean, split and mix: each is a preparation with another recipe. leakage compares ready sets."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from training.engine.data.intake.understanding import understand
from training.engine.data.preparation.inputs import PreparationInputs
from training.engine.data.preparation.overlap import compare_files
from training.engine.data.preparation.run import CARD_FILE, REPORT_FILE, PreparationResult, run_preparation
from training.engine.data.program.app import EXIT_FINDINGS, answers_errors, app
from training.engine.data.program.display import Display, ProgressDisplay
from training.engine.data.program.files import (
    merge_options,
    name_sets,
    output_folder,
    read_columns,
    read_recipe_file,
)
from training.engine.data.program.results import show_preparation, show_understanding
from training.engine.data.recipe import ROLES, Recipe
from training.engine.errors import DataInvalid

Source = Annotated[
    Path,
    typer.Argument(
        metavar="SOURCE", exists=True, help="Raw file or folder: JSONL, JSON, CSV, Parquet, HF datasets."
    ),
]
RecipeOption = Annotated[
    Path | None,
    typer.Option("--recipe", exists=True, dir_okay=False, help="YAML, TOML or JSON; options win over it."),
]
ColumnOption = Annotated[
    list[str], typer.Option("--column", metavar="MEANING=COLUMN", help="Such as input=question; repeat.")
]
OutOption = Annotated[Path, typer.Option("--out", help="Folder for the result; must not exist or be empty.")]
RoleOption = Annotated[str | None, typer.Option(help=f"What the set is for: {', '.join(ROLES)}.")]
SeedOption = Annotated[int | None, typer.Option(min=0, help="Of every random choice.")]
AgainstOption = Annotated[
    list[Path],
    typer.Option("--against", exists=True, help="Ready evaluation set to look for leaks into; repeat."),
]
TokenizerOption = Annotated[
    Path | None,
    typer.Option(exists=True, file_okay=False, help="Base model's folder, for lengths in tokens."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print report.json instead of tables.")]


@app.command("inspect")
@answers_errors
def inspect_command(
    source: Source,
    recipe: RecipeOption = None,
    column: ColumnOption = [],  # noqa: B006 (typer copies it)
    role: RoleOption = None,
    against: AgainstOption = [],  # noqa: B006
    tokenizer: TokenizerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Show how raw files are understood, what they hold and what is wrong with them; write nothing.

    Ends with 1 when a check finds an error or rows are bad.
    """
    display = Display(as_json=as_json)
    raw = {**_read(recipe, column, role), "clean": [], "split": None, "mix": None}
    if not as_json:
        show_understanding(display, understand(source, Recipe.from_json(raw).intake))
    with tempfile.TemporaryDirectory(prefix="assay-data-") as folder:
        output = Path(folder) / "prepared"
        result = _prepare(display, raw, source, output, against=against, tokenizer=tokenizer)
    _end(display, result, output=None)


@app.command("clean")
@answers_errors
def clean_command(
    source: Source,
    out: OutOption,
    recipe: RecipeOption = None,
    column: ColumnOption = [],  # noqa: B006
    role: RoleOption = None,
    seed: SeedOption = None,
    against: AgainstOption = [],  # noqa: B006
    general: Annotated[
        Path | None, typer.Option(exists=True, help="Ready general data, when the recipe mixes some in.")
    ] = None,
    unchanged: Annotated[
        Path | None, typer.Option(exists=True, help="Ready examples with nothing to change, likewise.")
    ] = None,
    tokenizer: TokenizerOption = None,
    as_json: JsonOption = False,
) -> None:
    """Read raw files, clean them by a recipe (all steps when it names none) and write sets, report and card.

    Ends with 1 when a check finds an error or rows are bad; everything is written all the same.
    """
    display = Display(as_json=as_json)
    raw = _read(recipe, column, role, seed)
    with output_folder(out) as output:
        result = _prepare(
            display,
            raw,
            source,
            output,
            against=against,
            tokenizer=tokenizer,
            general=general,
            unchanged=unchanged,
        )
    _end(display, result, output=out)


@app.command("split")
@answers_errors
def split_command(
    source: Source,
    out: OutOption,
    holdout: Annotated[float | None, typer.Option(help="Part for the holdout set, such as 0.1.")] = None,
    stratify_by: Annotated[
        str | None, typer.Option(help="category, tags/NAME or answer/FIELD of a JSON answer.")
    ] = None,
    group_by: Annotated[str | None, typer.Option(help="group, tags/NAME or origin/NAME.")] = None,
    recipe: RecipeOption = None,
    column: ColumnOption = [],  # noqa: B006
    seed: SeedOption = None,
    against: AgainstOption = [],  # noqa: B006
    as_json: JsonOption = False,
) -> None:
    """Cut a holdout set from training data: stratified, no group on both sides, no near duplicates across."""
    display = Display(as_json=as_json)
    options = {"holdout_fraction": holdout, "stratify_by": stratify_by, "group_by": group_by}
    raw = merge_options({**_read(recipe, column, "train", seed), "clean": [], "mix": None}, split=options)
    raw["split"] = raw.get("split") or {}
    with output_folder(out) as output:
        result = _prepare(display, raw, source, output, against=against)
    _end(display, result, output=out)


@app.command("mix")
@answers_errors
def mix_command(
    source: Source,
    out: OutOption,
    general: Annotated[Path | None, typer.Option(exists=True, help="Ready general instruction data.")] = None,
    general_fraction: Annotated[
        float | None, typer.Option(help="Part of the result that is general, 0.05-0.2 is usual.")
    ] = None,
    unchanged: Annotated[
        Path | None, typer.Option(exists=True, help="Ready examples with nothing to change.")
    ] = None,
    unchanged_fraction: Annotated[float | None, typer.Option(help="Part of the result; about 0.1.")] = None,
    balance_by: Annotated[
        str | None, typer.Option(help="category, tags/NAME or answer/FIELD whose rare values are repeated.")
    ] = None,
    recipe: RecipeOption = None,
    column: ColumnOption = [],  # noqa: B006
    seed: SeedOption = None,
    as_json: JsonOption = False,
) -> None:
    """Mix general data and examples with nothing to change into training data, against forgetting."""
    display = Display(as_json=as_json)
    options = {
        "general_fraction": general_fraction,
        "unchanged_fraction": unchanged_fraction,
        "balance_by": balance_by,
    }
    raw = merge_options({**_read(recipe, column, "train", seed), "clean": [], "split": None}, mix=options)
    raw["mix"] = raw.get("mix") or {}
    with output_folder(out) as output:
        result = _prepare(display, raw, source, output, general=general, unchanged=unchanged)
    _end(display, result, output=out)


@app.command("leakage")
@answers_errors
def leakage_command(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", exists=True, help="Ready sets (JSONL), two or more, in any order."),
    ],
    threshold: Annotated[float, typer.Option(min=0.5, max=1, help="Similarity of a near duplicate.")] = 0.85,
    as_json: JsonOption = False,
) -> None:
    """Compare sets pair by pair: exact and near duplicates. Ends with 1 when there are any."""
    if len(files) < 2:
        raise DataInvalid("too-few-sets", "Name two or more files to compare.")
    display = Display(as_json=as_json)
    leakage = compare_files(name_sets(files), threshold=threshold)
    if as_json:
        display.document(leakage)
    else:
        display.table(
            ("set", "with", "exact", "near"),
            [
                (pair["left"], pair["right"], pair["num_exact"], pair["num_near"])
                for pair in leakage["matrix"]
            ],
        )
        for overlap in leakage["matrix"]:
            for pair in overlap["pairs"]:
                display.line(
                    f"{pair['kind']} {pair['similarity']:.2f}: {overlap['left']} {pair['left_id']} = "
                    f"{overlap['right']} {pair['right_id']}"
                )
    if any(pair["num_exact"] or pair["num_near"] for pair in leakage["matrix"]):
        raise typer.Exit(EXIT_FINDINGS)


def _read(
    recipe: Path | None, column: list[str], role: str | None = None, seed: int | None = None
) -> dict[str, Any]:
    raw = read_recipe_file(recipe)
    if column:
        intake = dict(raw.get("intake") or {})
        intake["columns"] = {**(intake.get("columns") or {}), **read_columns(column)}
        raw["intake"] = intake
    given = {"role": role, "seed": seed}
    return {**raw, **{name: value for name, value in given.items() if value is not None}}


def _prepare(
    display: Display,
    raw: Mapping[str, Any],
    source: Path,
    output: Path,
    *,
    against: list[Path] | None = None,
    tokenizer: Path | None = None,
    general: Path | None = None,
    unchanged: Path | None = None,
) -> PreparationResult:
    recipe = Recipe.from_json(raw)
    inputs = PreparationInputs(
        sources=source,
        general=general,
        unchanged=unchanged,
        evaluation_sets=name_sets(against or []),
        tokenizer=tokenizer,
    )
    with tempfile.TemporaryDirectory(prefix="assay-data-") as scratch, ProgressDisplay(display) as progress:
        return run_preparation(
            inputs,
            recipe,
            output=output,
            scratch=Path(scratch),
            report=progress,
            num_processes=os.cpu_count() or 1,
        )


def _end(display: Display, result: PreparationResult, *, output: Path | None) -> None:
    report = result.report
    if display.as_json:
        display.document(report)
    else:
        show_preparation(display, report)
        if output is not None:
            display.line()
            display.line(f"Written to {output}: sets/, {CARD_FILE}, {REPORT_FILE}")
    has_errors = any(finding["severity"] == "error" for finding in report["findings"])
    if has_errors or report["intake"]["num_bad"]:
        raise typer.Exit(EXIT_FINDINGS)
