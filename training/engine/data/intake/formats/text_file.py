"""A text file that is ready to be read: where its bytes are, its encoding, and the bounds."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from training.engine.data.intake.encodings import TextEncoding
from training.engine.data.intake.rows import RowFault
from training.engine.data.intake.settings import IntakeLimits
from training.engine.data.intake.streams import RawLine, iterate_raw_lines, open_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """One text file.

    Attributes:
        path: Where it lies.
        is_gzip: Whether it is decompressed on the way.
        encoding: Of its (decompressed) bytes.
        limits: See ``IntakeLimits``.
    """

    path: Path
    is_gzip: bool
    encoding: TextEncoding
    limits: IntakeLimits

    def open(self) -> BinaryIO:
        """Open the bytes from the beginning.

        Raises:
            FileRefused: While reading, as ``streams.open_bytes``.
            OSError: The file cannot be opened.
        """
        return open_bytes(
            self.path, is_gzip=self.is_gzip, max_decompressed_bytes=self.limits.max_decompressed_bytes
        )

    def iterate_lines(self) -> Iterator[RawLine]:
        """Yield the lines as bytes, without the byte order mark."""
        with self.open() as file:
            yield from iterate_raw_lines(
                file,
                max_bytes=self.limits.max_line_bytes,
                line_end=self.encoding.line_end,
                skip=self.encoding.num_bom_bytes,
            )

    def too_long(self, num_bytes: int) -> RowFault:
        """Return the fault of a row of that length."""
        message = f"has {num_bytes} bytes, at most {self.limits.max_line_bytes} are read"
        return RowFault("row-too-long", message)
