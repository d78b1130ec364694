"""Files of examples between the stages of preparation: canonical lines, written whole or not at all."""

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from training.engine.data.examples import ChatMessage, Example


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenFile:
    """A file that is complete.

    Attributes:
        path: Where it lies.
        num_examples: Lines.
        sha256: Of its bytes, 64 hexadecimal digits.
        size_bytes: Its length.
    """

    path: Path
    num_examples: int
    sha256: str
    size_bytes: int


def write_examples(path: Path, examples: Iterable[Example]) -> WrittenFile:
    """Write one canonical line for each example; equal examples in equal order give equal bytes.

    The file appears under its name when it is complete and on the disk, not before.
    """
    return write_blocks(path, ((1, format_line(example)) for example in examples))


def format_line(example: Example) -> bytes:
    """Return the line of an example, line feed included."""
    return example.to_line().encode() + b"\n"


def write_blocks(path: Path, blocks: Iterable[tuple[int, bytes]]) -> WrittenFile:
    """Write lines that ``format_line`` made, as ``write_examples`` does.

    Args:
        path: The file.
        blocks: How many lines, and these lines.
    """
    partial = path.with_name(f".{path.name}.partial")
    digest, num_examples, size_bytes = hashlib.sha256(), 0, 0
    try:
        with partial.open("wb") as file:
            for num_lines, lines in blocks:
                file.write(lines)
                digest.update(lines)
                num_examples += num_lines
                size_bytes += len(lines)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return WrittenFile(path=path, num_examples=num_examples, sha256=digest.hexdigest(), size_bytes=size_bytes)


def copy_examples(written: WrittenFile, path: Path) -> WrittenFile:
    """Copy a file that ``write_examples`` made, as whole and as safely as that one was written."""
    partial = path.with_name(f".{path.name}.partial")
    try:
        with written.path.open("rb") as source, partial.open("wb") as file:
            shutil.copyfileobj(source, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return replace(written, path=path)


def iterate_examples(path: Path) -> Iterator[Example]:
    """Read a file that ``write_examples`` made, one example at a time; for foreign files use ``jsonl`` or
    ``intake``.
    """
    # Not splitlines: U+2028 is allowed inside JSON strings.
    with path.open("rb") as file:
        for line in file:
            yield parse_line(line)


def parse_line(line: bytes) -> Example:
    """Return the example of one line that ``write_examples`` wrote."""
    row = json.loads(line)
    messages = tuple(ChatMessage(item["role"], item["content"]) for item in row.pop("messages"))
    example_id = row.pop("id")
    return Example(
        example_id=example_id, messages=messages, is_general=row.get("role") == "general", fields=row
    )
