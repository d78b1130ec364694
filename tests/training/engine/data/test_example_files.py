import hashlib
from pathlib import Path

import pytest

from training.engine.data.example_files import (
    copy_examples,
    format_line,
    iterate_examples,
    write_blocks,
    write_examples,
)
from training.engine.data.examples import ChatMessage, Example

EXAMPLES = [
    Example(
        example_id=f"e{number}",
        # A line separator that is no line feed, and a line feed that is escaped.
        messages=(ChatMessage("user", f"a\u2028b\n{number}"), ChatMessage("assistant", "é")),
        fields={"tags": {"a": "b"}, "score": 1.5},
    )
    for number in range(3)
]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    written = write_examples(tmp_path / "a.jsonl", EXAMPLES)
    content = written.path.read_bytes()
    assert (written.num_examples, written.size_bytes) == (3, len(content))
    assert written.sha256 == hashlib.sha256(content).hexdigest()
    assert list(iterate_examples(written.path)) == EXAMPLES


def test_blocks_of_lines_make_the_same_file(tmp_path: Path) -> None:
    lines = [format_line(example) for example in EXAMPLES]
    blocks = [(2, b"".join(lines[:2])), (0, b""), (1, lines[2])]
    by_blocks = write_blocks(tmp_path / "a.jsonl", blocks)
    by_examples = write_examples(tmp_path / "b.jsonl", EXAMPLES)
    assert by_blocks.path.read_bytes() == by_examples.path.read_bytes()
    assert (by_blocks.num_examples, by_blocks.sha256) == (3, by_examples.sha256)


def test_a_copy_is_described_as_it_was_written(tmp_path: Path) -> None:
    written = write_examples(tmp_path / "a.jsonl", EXAMPLES)
    copy = copy_examples(written, tmp_path / "b.jsonl")
    assert copy.path.read_bytes() == written.path.read_bytes()
    assert copy.path == tmp_path / "b.jsonl"
    assert (copy.num_examples, copy.sha256, copy.size_bytes) == (3, written.sha256, written.size_bytes)


def test_a_fault_leaves_no_file(tmp_path: Path) -> None:
    def failing() -> object:
        yield EXAMPLES[0]
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        write_examples(tmp_path / "a.jsonl", failing())  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []
