"""The rows of a training: files read, rendered and chosen from."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from training.engine.chat import ChatRow, ChatTokenizer, render_rows
from training.engine.config import TrainingConfig
from training.engine.data.jsonl import list_jsonl_files, read_examples
from training.engine.errors import DataInvalid
from training.engine.progress import RunReporter

MAX_LISTED_DROPPED: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRows:
    """What a training reads.

    Attributes:
        training: Rows to train on, at least one.
        held_out: Rows of the held-out loss; may be empty.
        num_dropped: Training examples left out, reported in the log.
        pad_token_id: Any valid id; padding is masked and never in the loss.
    """

    training: tuple[ChatRow, ...]
    held_out: tuple[ChatRow, ...]
    num_dropped: int
    pad_token_id: int

    @property
    def longest_tokens(self) -> int:
        """Tokens of the longest row."""
        return max(len(row.input_ids) for row in (*self.training, *self.held_out))


def read_training_rows(
    tokenizer: ChatTokenizer,
    *,
    training_data: Path,
    holdout: Path | None,
    config: TrainingConfig,
    report: RunReporter,
) -> TrainingRows:
    """Read and render the data of a training, and choose from it where the configuration says so.

    Args:
        tokenizer: Of the base.
        training_data: JSONL file, or a folder whose ``*.jsonl`` files are all used.
        holdout: Likewise; None leaves it out.
        config: Of the run.
        report: Receives what is left out.

    Raises:
        DataInvalid: Unreadable lines, or ``no-rows-left``.
        ChatTemplateUnsuitable: The template cannot be trained with.
    """
    rows, num_dropped = _read_rows(training_data, tokenizer, config, report)
    held_out, _ = _read_rows(holdout, tokenizer, config, report) if holdout else ([], 0)
    return TrainingRows(
        training=tuple(choose_rows(rows, config.data.max_examples, seed=config.training.seed)),
        held_out=tuple(held_out),
        num_dropped=num_dropped,
        pad_token_id=_pad_token_id(tokenizer),
    )


def choose_rows(rows: list[ChatRow], limit: int | None, *, seed: int) -> list[ChatRow]:
    """Return a random choice of at most ``limit`` rows, in their order; all rows when it is None."""
    if limit is None or limit >= len(rows):
        return rows
    chosen = random.Random(seed).sample(range(len(rows)), limit)  # noqa: S311 (a choice, not a secret)
    return [rows[index] for index in sorted(chosen)]


def _read_rows(
    path: Path, tokenizer: ChatTokenizer, config: TrainingConfig, report: RunReporter
) -> tuple[list[ChatRow], int]:
    """Read and render a file or folder; report what is dropped and return its number beside the rows.

    Raises:
        DataInvalid: ``no-rows-left`` when nothing is left.
    """
    rows: list[ChatRow] = []
    num_dropped = 0
    for file in list_jsonl_files(path):
        rendered = render_rows(
            tokenizer,
            read_examples(file),
            system_prompt=config.data.system_prompt,
            max_length_tokens=config.training.max_length_tokens,
        )
        rows += rendered.rows
        num_dropped += len(rendered.dropped)
        if rendered.dropped:
            shown = rendered.dropped[:MAX_LISTED_DROPPED]
            listed = "; ".join(f"{item.example_id}: {item.reason}" for item in shown)
            report.log("warning", f"{file.name}: {len(rendered.dropped)} examples left out ({listed})")
    if not rows:
        raise DataInvalid("no-rows-left", f"The input {path.name} holds no example that can be used.")
    return rows, num_dropped


def _pad_token_id(tokenizer: ChatTokenizer) -> int:
    """Return any valid id: padding is masked and never in the loss."""
    candidates = (tokenizer.pad_token_id, tokenizer.eos_token_id)
    return next((token for token in candidates if token is not None), 0)
