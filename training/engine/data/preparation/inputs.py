"""The files of a preparation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparationInputs:
    """The files of a preparation.

    Attributes:
        sources: Raw file, or folder of them.
        general: Ready general instruction data to mix in: a JSONL file or folder; None when there is none.
        unchanged: Ready examples with nothing to change, likewise.
        evaluation_sets: Ready evaluation sets by name, to look for leaks.
        tokenizer: Folder with the base model's tokenizer.json; None leaves token lengths out.
    """

    sources: Path
    general: Path | None = None
    unchanged: Path | None = None
    evaluation_sets: Mapping[str, Path] = field(default_factory=dict)
    tokenizer: Path | None = None
