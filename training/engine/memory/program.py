"""The estimate on files alone: `python -m training.engine.memory`, which `assay train estimate` becomes."""

import os
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from training.engine.config import DEFAULT_RANK
from training.engine.data.program.app import EXIT_ERROR, EXIT_FINDINGS, PROGRAM_NAME_VARIABLE, answers_errors
from training.engine.data.program.display import Display
from training.engine.memory.cards import BYTES_PER_GB, MAX_KINDS
from training.engine.memory.comparison import (
    CardAnswer,
    MemoryComparison,
    MethodEstimate,
    compare_methods,
)
from training.engine.memory.estimate import METHODS
from training.engine.memory.model_files import read_model_files
from training.engine.memory.request import ALL_METHODS, DEFAULT_TOKENS, EstimateRequest
from training.engine.memory.wording import METHOD_NAMES, describe_answer, describe_fit, gigabytes, name_item

_CLICK_USAGE_ERROR: Final = 2

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
@answers_errors
def estimate(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            exists=True,
            help="Folder of a base model, or its config.json; no weights needed.",
        ),
    ],
    card: Annotated[
        list[str],
        typer.Option(
            help=f'Memory of a card: 24GB, or "80GB x 8" for several; repeat for up to {MAX_KINDS}.'
        ),
    ] = [],  # noqa: B006 (typer copies it)
    method: Annotated[str, typer.Option(help=f"{ALL_METHODS}, {', '.join(METHODS)}.")] = ALL_METHODS,
    tokens: Annotated[int, typer.Option(help="Tokens per row.")] = DEFAULT_TOKENS,
    batch: Annotated[int, typer.Option(help="Rows per forward pass; accumulation costs no memory.")] = 1,
    rank: Annotated[int, typer.Option(help="Rank of the LoRA.")] = DEFAULT_RANK,
    target_module: Annotated[
        list[str], typer.Option(help="Adapted module, such as q_proj; repeat. Else all seven projections.")
    ] = [],  # noqa: B006
    layers: Annotated[
        int | None, typer.Option(help="How many blocks are adapted; else all.", show_default=False)
    ] = None,
    checkpointing: Annotated[
        bool, typer.Option("--checkpointing/--no-checkpointing", help="Recompute activations.")
    ] = True,
    short_moments: Annotated[
        bool, typer.Option("--short-moments", help="Adam's moments in bf16: 12 bytes instead of 16.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the answer as JSON, in bytes.")] = False,
) -> None:
    """Tell how much memory a training needs, line by line, which cards it fits, and what to change first.

    1 GB is 10^9 bytes, as on the card's label. Ends with 1 when no method fits one of the cards.
    """
    display = Display(as_json=as_json)
    values: dict[str, Any] = {
        "method": method,
        "cards": card,
        "tokens": tokens,
        "batch_size": batch,
        "rank": rank,
        "layers": layers,
        "checkpointing": checkpointing,
        "short_moments": short_moments,
    }
    if target_module:
        values["target_modules"] = target_module
    request = EstimateRequest.from_json(values)
    files = read_model_files(model)
    comparison = compare_methods(files.config, request, num_stored_parameters=files.num_stored_parameters)
    if as_json:
        display.document(comparison.to_json())
    else:
        show_comparison(display, comparison)
    if any(not answer.fitting for answer in comparison.cards):
        raise typer.Exit(EXIT_FINDINGS)


def show_comparison(display: Display, comparison: MemoryComparison) -> None:
    """Print a ledger for each method, how each fits the cards, and what to change."""
    request, shape = comparison.request, comparison.shape
    name = comparison.model_type or "model"
    with_or_without = "with" if request.checkpointing else "without"
    display.line(
        f"{name}: {shape.num_parameters:,} parameters, {shape.num_layers} blocks; "
        f"rows of {request.tokens} tokens, batch {request.batch_size}, {with_or_without} checkpointing"
    )
    for doubt in comparison.doubts:
        display.line(f"{doubt.code}: {doubt.message}", "yellow")
    for method in comparison.methods:
        _show_ledger(display, method)
    if not request.cards:
        display.line()
        display.line("Name cards with --card to see what fits.", "dim")
        return
    display.line()
    display.table(
        ("method", *(card.label for card in request.cards)),
        [
            (METHOD_NAMES[method.method], *(describe_fit(fit) for fit in method.fits))
            for method in comparison.methods
        ],
    )
    for answer in comparison.cards:
        _show_answer(display, answer)


def _show_ledger(display: Display, method: MethodEstimate) -> None:
    estimate = method.estimate
    display.line()
    display.line(
        f"{METHOD_NAMES[method.method]}: {gigabytes(estimate.low_bytes, estimate.high_bytes)} GB, "
        f"{estimate.num_trained:,} parameters trained",
        "bold",
    )
    display.table(
        ("item", "GB", "how"),
        [
            (name_item(line.name), gigabytes(line.low_bytes, line.high_bytes), line.how)
            for line in estimate.lines
        ],
    )


def _show_answer(display: Display, answer: CardAnswer) -> None:
    display.line()
    style = "green" if answer.fitting else "red" if answer.is_hopeless else "yellow"
    display.line(f"{answer.card.label}: {describe_answer(answer)}", style)
    for number, change in enumerate(answer.changes, start=1):
        size = f"{change.high_bytes / BYTES_PER_GB:.1f} GB"
        display.line(f"  {number}. {change.what}: {size}{', which fits' if change.fits else ''}")


def main(arguments: list[str] | None = None) -> None:
    """Run the program; its name in help texts is that of the command that people type."""
    name = os.environ.get(PROGRAM_NAME_VARIABLE, "python -m training.engine.memory")
    try:
        app(args=arguments, prog_name=name)
    except SystemExit as end:
        # click ends a usage error with 2, which in Assay means "inconclusive".
        raise SystemExit(EXIT_ERROR if end.code == _CLICK_USAGE_ERROR else end.code) from None
