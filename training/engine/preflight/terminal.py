"""The preflight's document on a terminal: decoded batches in colour, then the checks."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from rich.text import Text

from training.engine.data.program.display import Display, shown_whole

PROMPT_STYLE: Final = "dim"
TRAINED_STYLE: Final = "green"
SPECIAL_STYLE: Final = "magenta"
TRAINED_SPECIAL_STYLE: Final = "bold green reverse"
_MARKS: Final[Mapping[str, tuple[str, str]]] = {
    "passed": ("✓", "green"),
    "failed": ("✗", "bold red"),
    "warning": ("!", "yellow"),
    "skipped": ("-", "dim"),
}


def show_document(display: Display, document: Mapping[str, Any], *, special_tokens: Sequence[str]) -> None:
    """Print a preflight's document.

    Args:
        display: Where to.
        document: As the preflight recorded it.
        special_tokens: Texts of the tokenizer's special tokens, which are set off.
    """
    for number, batch in enumerate(document["batches"], start=1):
        display.line(f"Batch {number}", "bold")
        for row in batch["rows"]:
            display.out.print(paint_row(row, special_tokens))
    for check in document["checks"]:
        show_check(display, check)
    overfit = document["overfit"]
    if overfit and overfit["losses"]:
        listed = " ".join(f"{loss:.3f}" for loss in overfit["losses"])
        display.line(f"Losses while learning by heart: {listed}", "dim")
    counts = {name: sum(check["status"] == name for check in document["checks"]) for name in _MARKS}
    verdict = "The preflight passed" if document["passed"] else "The preflight failed"
    listed = ", ".join(f"{count} {name}" for name, count in counts.items() if count)
    display.line(f"{verdict}: {listed}.", "green" if document["passed"] else "bold red")


def paint_row(row: Mapping[str, Any], special_tokens: Sequence[str]) -> Text:
    """Return one decoded row: the prompt dim, trained tokens green, special tokens set off.

    Args:
        row: Of the document.
        special_tokens: Texts of the tokenizer's special tokens.
    """
    text = Text.assemble(
        (f"{shown_whole(row['example_id'])}", "bold"),
        f"  {row['num_tokens']} tokens, {row['num_trained_tokens']} trained"
        + (", shortened here" if row["was_cut"] else "")
        + "\n",
    )
    for segment in row["segments"]:
        for piece, is_special in split_special(segment["text"], special_tokens):
            text.append(_visible(piece), _style(is_trained=segment["trained"], is_special=is_special))
    return text.append("\n")


def split_special(text: str, special_tokens: Iterable[str]) -> list[tuple[str, bool]]:
    """Return the pieces of a text, and of each whether it is a special token."""
    tokens = sorted(filter(None, special_tokens), key=len, reverse=True)
    if not tokens:
        return [(text, False)]
    pieces = re.split(f"({'|'.join(map(re.escape, tokens))})", text)
    # With one group in the expression every second piece is a token.
    return [(piece, index % 2 == 1) for index, piece in enumerate(pieces) if piece]


def show_check(display: Display, check: Mapping[str, Any]) -> None:
    """Print one check with its mark, and where something is the matter its row and remedy."""
    mark, style = _MARKS[check["status"]]
    row = f" [handbook: {check['row']}]" if check["row"] else ""
    display.out.print(
        Text.assemble((mark, style), f" {check['code']}: {shown_whole(check['message'])}", (row, style))
    )
    if check["examples"]:
        display.out.print(Text(f"  examples: {', '.join(check['examples'])}", "dim"))
    if check["remedy"]:
        display.out.print(Text(f"  -> {shown_whole(check['remedy'])}"))


def _style(*, is_trained: bool, is_special: bool) -> str:
    if is_special:
        return TRAINED_SPECIAL_STYLE if is_trained else SPECIAL_STYLE
    return TRAINED_STYLE if is_trained else PROMPT_STYLE


def _visible(text: str) -> str:
    """Return foreign text with all but its line breaks escaped, and these marked."""
    return "↵\n".join(shown_whole(line) for line in text.split("\n"))
