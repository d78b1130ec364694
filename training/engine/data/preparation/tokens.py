"""Token lengths under a base model's tokenizer, without a model library: the `tokenizers` package alone."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.engine.data.cleaning.step import TokenCounter
from training.engine.errors import DataInvalid

TOKENIZER_FILE = "tokenizer.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class LengthTokenizer:
    """Counts tokens.

    Attributes:
        count: Tokens of a text without special tokens; what a chat template adds is not in it.
        sha256: Of tokenizer.json.
    """

    count: TokenCounter
    sha256: str

    def to_json(self) -> dict[str, Any]:
        """Return the form used in reports."""
        return {"sha256": self.sha256}


def load_tokenizer(folder: Path | None) -> LengthTokenizer | None:
    """Load ``tokenizer.json`` of a base model's folder; None for None.

    Raises:
        DataInvalid: ``tokenizer-missing``, ``tokenizer-invalid``, or ``library-missing`` where the data extra
            is not installed.
    """
    if folder is None:
        return None
    path = folder / TOKENIZER_FILE
    if not path.is_file():
        raise DataInvalid("tokenizer-missing", f"The base model has no {TOKENIZER_FILE}; lengths need it.")
    try:
        from tokenizers import Tokenizer
    except ImportError as error:
        raise DataInvalid(
            "library-missing", "Token lengths need the package tokenizers: pip install 'assay-gate[data]'."
        ) from error
    content = path.read_bytes()
    try:
        tokenizer = Tokenizer.from_str(content.decode())
    except Exception as error:
        raise DataInvalid("tokenizer-invalid", f"{TOKENIZER_FILE} cannot be read: {error}") from error

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    return LengthTokenizer(count=count, sha256=hashlib.sha256(content).hexdigest())
