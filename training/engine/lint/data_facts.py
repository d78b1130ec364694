"""What training files tell the rules without a tokenizer."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from training.engine.data.examples import Example
from training.engine.data.jsonl import list_jsonl_files, read_examples
from training.engine.lint.plan import DataFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableExample:
    """An example that the trainer drops whatever its length, and why."""

    example_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredData:
    """What is known of the training data.

    Attributes:
        facts: Of all examples; once they were rendered, of those that can be.
        unusable: The others; empty as long as nothing was rendered.
    """

    facts: DataFacts
    unusable: tuple[UnusableExample, ...] = ()


def read_training_examples(files: Iterable[Path], general: Iterable[Path]) -> tuple[Example, ...]:
    """Read files or folders; those of ``general`` hold general instruction data, whatever their lines say.

    Raises:
        DataInvalid: ``data-file-missing`` or ``jsonl-invalid``.
    """
    examples = _read(files)
    examples += [replace(example, is_general=True) for example in _read(general)]
    return tuple(examples)


def count_examples(examples: Sequence[Example]) -> MeasuredData:
    """Return the number of examples and the part of them that is general."""
    num_general = sum(example.is_general for example in examples)
    general_fraction = num_general / len(examples) if examples else None
    return MeasuredData(facts=DataFacts(num_rows=len(examples), general_fraction=general_fraction))


def _read(paths: Iterable[Path]) -> list[Example]:
    return [example for path in paths for file in list_jsonl_files(path) for example in read_examples(file)]
