"""review: a person looks through a random selection in the terminal; the state is kept after every key."""

import getpass
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import click
import typer

from training.engine.data.example_files import write_examples
from training.engine.data.examples import Example
from training.engine.data.jsonl import read_examples
from training.engine.data.program.app import answers_errors, app
from training.engine.data.program.display import Display
from training.engine.data.reviewing import (
    DEFAULT_NUM_REVIEWED,
    Review,
    ReviewVerdict,
    apply_review,
    choose_for_review,
    read_review,
    write_review,
)
from training.engine.errors import DataInvalid

_KEYS = {"g": "good", "b": "bad", "f": "fix"}
_HELP = "g good, b bad, f fix, s skip, q stop (the state is kept)"


@app.command("review")
@answers_errors
def review_command(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", exists=True, dir_okay=False, help="A ready set (JSONL).")
    ],
    state: Annotated[
        Path | None, typer.Option("--state", help="Where verdicts are kept; FILE.review.json if not given.")
    ] = None,
    num: Annotated[
        int, typer.Option("--num", min=1, help="How many examples to look at.")
    ] = DEFAULT_NUM_REVIEWED,
    seed: Annotated[int, typer.Option(min=0, help="Another seed selects other examples.")] = 0,
    reviewer: Annotated[str | None, typer.Option(help="Your name; the user's if not given.")] = None,
    apply_to: Annotated[
        Path | None,
        typer.Option("--apply", help="Look at nothing; write the set with fixes made and bad ones gone."),
    ] = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="With --apply: good and fixed references count as confirmed.")
    ] = False,
) -> None:
    """Look through a random selection of examples: good, bad or fix. Stop and go on at any time."""
    display = Display()
    examples = {example.example_id: example for example in read_examples(file)}
    state_path = state or file.with_name(f"{file.name}.review.json")
    review = _load(file, state_path, examples, num=num, seed=seed, reviewer=reviewer)
    if apply_to is not None:
        reviewed = apply_review(
            examples.values(), review.verdicts, reviewer=review.reviewer, confirms=confirm
        )
        written = write_examples(apply_to, reviewed)
        display.line(f"{written.num_examples} of {len(examples)} examples written to {apply_to}")
        return
    review = _look(display, review, examples, state_path)
    counts = ", ".join(f"{num} {name}" for name, num in review.count().items())
    display.line(f"{len(review.verdicts)} of {len(review.example_ids)} reviewed: {counts}", "bold")
    display.line(f"Kept in {state_path}")


def _load(
    file: Path,
    state_path: Path,
    examples: Mapping[str, Example],
    *,
    num: int,
    seed: int,
    reviewer: str | None,
) -> Review:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    if not state_path.exists():
        chosen = choose_for_review(examples, seed=seed, digest=digest, num_examples=num)
        return Review(
            data_sha256=digest, seed=seed, example_ids=chosen, reviewer=reviewer or getpass.getuser()
        )
    review = read_review(state_path)
    if review.data_sha256 != digest:
        message = f"{state_path} holds verdicts on other bytes than {file}; name another --state."
        raise DataInvalid("review-of-other-data", message)
    return review


def _look(display: Display, review: Review, examples: Mapping[str, Example], state_path: Path) -> Review:
    display.line(_HELP, "dim")
    for example_id in review.open_ids:
        _show(display, examples[example_id], review)
        verdict = _ask(display)
        if verdict == "q":
            break
        if verdict == "s":
            continue
        fixed = None
        if verdict == "f":
            fixed = click.edit(examples[example_id].answer or "", extension=".txt", require_save=True)
            if fixed is None:
                display.line("Not changed; skipped.", "yellow")
                continue
            fixed = fixed.rstrip("\n")
        review = review.with_verdict(example_id, ReviewVerdict(verdict=_KEYS[verdict], fixed_answer=fixed))
        write_review(state_path, review)
    return review


def _show(display: Display, example: Example, review: Review) -> None:
    display.line()
    display.line(f"{len(review.verdicts) + 1} of {len(review.example_ids)}: {example.example_id}", "bold")
    for message in example.messages:
        display.line(f"{message.role}: {message.content}", "green" if message.role == "assistant" else "")


def _ask(display: Display) -> str:
    while True:
        try:
            key = click.getchar().lower()
        except (EOFError, KeyboardInterrupt):
            return "q"
        if key in (*_KEYS, "s", "q"):
            return key
        if key in ("", "\x03", "\x04"):
            return "q"
        display.line(_HELP, "dim")
