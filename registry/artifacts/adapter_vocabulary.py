"""Compares a resized vocabulary with the base model's tokenizer.

The merged model keeps the base's tokenizer, so each of its tokens needs a row. Standard library only.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from registry.artifacts.findings import Finding
from registry.artifacts.json_files import JsonFileError, load_json_object

_TOKENIZER = "tokenizer.json"


def check_vocabulary(base_model_dir: Path, vocab_size: int | None) -> Iterator[Finding]:
    """Check that every token of the base's tokenizer has a row in a resized embedding.

    Args:
        base_model_dir: the base model's folder.
        vocab_size: rows of the resized embedding; None when it was not resized, and then nothing is read.
    """
    if vocab_size is None:
        return
    num_tokens = count_tokens(base_model_dir / _TOKENIZER)
    if num_tokens is not None and num_tokens > vocab_size:
        message = (
            f"The resized embedding has {vocab_size} rows, the base's tokenizer knows {num_tokens} tokens: "
            "some "
            "would have no row."
        )
        remedy = "Choose the base model on which the adapter was trained."
        yield Finding.error("vocabulary-too-small", message, where=_TOKENIZER, remedy=remedy)


def count_tokens(path: Path) -> int | None:
    """Return the highest token number of a tokenizer.json plus one; None when it is not there or not
    readable.
    """
    try:
        content = load_json_object(path)
    except (JsonFileError, OSError):
        return None
    numbers = [*_model_numbers(content.get("model")), *_added_numbers(content.get("added_tokens"))]
    return max(numbers) + 1 if numbers else None


def _model_numbers(model: Any) -> Iterator[int]:
    vocab = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocab, dict):
        yield from (number for number in vocab.values() if isinstance(number, int))
    elif isinstance(vocab, list) and vocab:
        yield len(vocab) - 1


def _added_numbers(added: Any) -> Iterator[int]:
    for token in added if isinstance(added, list) else ():
        if isinstance(token, dict) and isinstance(token.get("id"), int):
            yield token["id"]
