"""The first stage: the data made visible, and every check of them that needs no step (MISSION T1(1), T2)."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from registry.artifacts.json_files import JsonFileError, load_json_object
from training.engine.batches import Batch
from training.engine.chat import ChatTokenizer, DroppedExample, find_end_token_id, render_rows
from training.engine.config import TrainingConfig
from training.engine.data.examples import Example
from training.engine.data.jsonl import list_jsonl_files, read_examples
from training.engine.errors import ChatTemplateUnsuitable
from training.engine.preflight.checks.catalogue import DATA_CHECKS
from training.engine.preflight.data_view import DataView
from training.engine.preflight.decoding import decode_batches
from training.engine.preflight.report import CheckResult, ShownRow
from training.engine.preflight.token_rows import TokenRow, from_chat_rows
from training.engine.step_plan import StepPlan
from training.engine.training_rows import TrainingRows

GENERATION_FILE: Final = "generation_config.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFindings:
    """What the first stage saw.

    Attributes:
        checks: One result of each check, in the catalogue's order.
        batches: The first batches, decoded.
    """

    checks: tuple[CheckResult, ...]
    batches: tuple[tuple[ShownRow, ...], ...]


def look_at_data(view: DataView, batches: Iterable[Batch]) -> DataFindings:
    """Decode the first batches and make every check of the data.

    Args:
        view: The data; rows may come from elsewhere, with any labels.
        batches: As they will enter the model; only the first ``preflight.num_shown_batches`` are read.
    """
    shown = itertools.islice(batches, view.config.preflight.num_shown_batches)
    return DataFindings(
        checks=tuple(check(view) for check in DATA_CHECKS),
        batches=decode_batches(view.tokenizer, shown),
    )


def make_view(
    tokenizer: ChatTokenizer,
    rows: Sequence[TokenRow],
    config: TrainingConfig,
    *,
    base_model: Path | None = None,
    examples: Sequence[Example] = (),
    dropped: Sequence[DroppedExample] = (),
    held_out: Sequence[Example] = (),
    held_out_rows: Sequence[TokenRow] = (),
) -> DataView:
    """Put together what the checks look at; of the base, its stop tokens and the size of its vocabulary.

    Args:
        tokenizer: Of the base.
        rows: That are trained on, from here or from elsewhere.
        config: Of the training.
        base_model: Hugging Face folder; None leaves what it would tell unknown.
        examples: That the rows were rendered from; without them the checks of texts are skipped or look at
            the decoded rows.
        dropped: Examples that were left out.
        held_out: Examples of the held-out loss.
        held_out_rows: Their rows.
    """
    try:
        end_token_id: int | None = find_end_token_id(tokenizer)
    except ChatTemplateUnsuitable:
        end_token_id = None
    return DataView(
        tokenizer=tokenizer,
        config=config,
        rows=rows,
        examples=examples,
        dropped=dropped,
        held_out=held_out,
        held_out_rows=held_out_rows,
        stop_ids=read_stop_ids(tokenizer, base_model),
        end_token_id=end_token_id,
        vocabulary_size=None if base_model is None else _read_vocabulary_size(base_model),
    )


def view_training_data(
    tokenizer: ChatTokenizer,
    rows: TrainingRows,
    config: TrainingConfig,
    *,
    base_model: Path,
    training_data: Path,
    holdout: Path | None,
) -> DataView:
    """Put together the data of a training from its files and the rows that were read from them.

    Args:
        tokenizer: Of the base.
        rows: From `training.engine.training_rows.read_training_rows`.
        config: Of the training.
        base_model: Hugging Face folder.
        training_data: JSONL file or folder.
        holdout: Likewise; None without.
    """
    examples = _read_all(training_data)
    dropped = _find_dropped(tokenizer, examples, config) if rows.num_dropped else ()
    return make_view(
        tokenizer,
        from_chat_rows(rows.training),
        config,
        base_model=base_model,
        examples=examples,
        dropped=dropped,
        held_out=() if holdout is None else _read_all(holdout),
        held_out_rows=from_chat_rows(rows.held_out),
    )


def iterate_batches(rows: TrainingRows, config: TrainingConfig) -> Iterable[Batch]:
    """Yield the batches of a training in their order, as they will enter the model."""
    plan = StepPlan(rows.training, config.training, pad_token_id=rows.pad_token_id)
    for _, batches in plan.iterate(after_step=0):
        yield from batches


def read_stop_ids(tokenizer: ChatTokenizer, base_model: Path | None) -> frozenset[int]:
    """Return the tokens at which a server stops by itself: the tokenizer's eos token, and those of the base's
    generation settings where it has them.
    """
    found = {tokenizer.eos_token_id}
    if base_model is not None:
        listed: Any = _read_object(base_model / GENERATION_FILE).get("eos_token_id")
        found |= {token for token in (listed if isinstance(listed, list) else [listed])}
    return frozenset(token for token in found if isinstance(token, int))


def _read_vocabulary_size(base_model: Path) -> int | None:
    config = _read_object(base_model / "config.json")
    text_config = config.get("text_config")
    size = config.get("vocab_size", text_config.get("vocab_size") if isinstance(text_config, dict) else None)
    return size if isinstance(size, int) else None


def _read_object(path: Path) -> dict[str, Any]:
    """Return the object in a file of the base; {} without one: the base is judged where it is loaded."""
    try:
        return load_json_object(path)
    except (OSError, JsonFileError):
        return {}


def _find_dropped(
    tokenizer: ChatTokenizer, examples: Sequence[Example], config: TrainingConfig
) -> tuple[DroppedExample, ...]:
    rendered = render_rows(
        tokenizer,
        examples,
        system_prompt=config.data.system_prompt,
        max_length_tokens=config.training.max_length_tokens,
    )
    return rendered.dropped


def _read_all(path: Path) -> tuple[Example, ...]:
    return tuple(example for file in list_jsonl_files(path) for example in read_examples(file))
