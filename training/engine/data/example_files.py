"""Files of examples between the stages of preparation: canonical lines, written whole or not at all."""

import hashlib
import json
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
    partial = path.with_name(f".{path.name}.partial")
    digest, num_examples, size_bytes = hashlib.sha256(), 0, 0
    try:
        with partial.open("wb") as file:
            for example in examples:
                line = example.to_line().encode() + b"\n"
                file.write(line)
                digest.update(line)
                num_examples += 1
                size_bytes += len(line)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return WrittenFile(path=path, num_examples=num_examples, sha256=digest.hexdigest(), size_bytes=size_bytes)


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
