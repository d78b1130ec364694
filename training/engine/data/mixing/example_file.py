"""A file of examples as a sequence."""

from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self, overload

from training.engine.data.example_files import iterate_examples, parse_line
from training.engine.data.examples import Example


class ExampleFile(Sequence[Example]):
    """The examples of a file that ``write_examples`` made, read one at a time when they are asked for.

    Held are the open file and the places of its lines, 8 bytes each. A context manager: leaving it closes the
    file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = path.open("rb")
        self._offsets = array("Q", [0])
        for line in self._file:
            self._offsets.append(self._offsets[-1] + len(line))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def __iter__(self) -> Iterator[Example]:
        return iterate_examples(self._path)

    @overload
    def __getitem__(self, place: int) -> Example: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Example]: ...
    def __getitem__(self, place: int | slice) -> Example | Sequence[Example]:
        if isinstance(place, slice):
            return [self[number] for number in range(*place.indices(len(self)))]
        if not 0 <= place < len(self):
            raise IndexError(place)
        self._file.seek(self._offsets[place])
        return parse_line(self._file.readline())
