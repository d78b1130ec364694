"""Loads the tokenizer that renders the prompts."""

from pathlib import Path
from typing import cast

from evaluation.engine.errors import PromptError
from evaluation.engine.prompts import ChatTokenizer


def load_tokenizer(folder: Path) -> ChatTokenizer:
    """Load a tokenizer from a local model folder; nothing is fetched and no code of the model is run.

    Raises:
        PromptError: The folder holds no tokenizer that can be loaded (``tokenizer-unreadable``).
    """
    # Importing transformers takes seconds; only those who load a tokenizer pay for it.
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise PromptError(
            "tokenizer-unreadable", f"no tokenizer can be loaded from the model: {error}"
        ) from error
    return cast(ChatTokenizer, tokenizer)
