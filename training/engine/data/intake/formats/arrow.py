"""Arrow IPC files and streams, as Hugging Face datasets saves them on disk; mapped, not loaded."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from registry.artifacts.findings import shown
from training.engine.data.intake.formats.tables import (
    TableLayout,
    describe_schema,
    iterate_batch,
    load_pyarrow,
)
from training.engine.data.intake.rows import FileRefused, RawRow, RowFault, UnreadableRow
from training.engine.data.intake.settings import IntakeLimits

_FILE_MAGIC = b"ARROW1"
_REMEDY = "Save the dataset again; the file may be cut off."


def find_arrow_layout(path: Path) -> TableLayout:
    """Read the columns out of the file's schema.

    Raises:
        FileRefused: ``pyarrow-missing``, ``arrow-broken`` or ``columns-twice``.
        OSError: The file cannot be opened.
    """
    with _opened(path) as (schema, _):
        return describe_schema(schema)


def read_arrow(
    path: Path, layout: TableLayout, limits: IntakeLimits, *, columns: Collection[str] | None = None
) -> Iterator[RawRow | UnreadableRow]:
    """Yield the rows of an Arrow file or stream.

    Every batch is validated before a value is read: lengths and places inside it come from the file.

    Args:
        path: The file.
        layout: See ``find_arrow_layout``.
        limits: Rows that are too long are passed over.
        columns: Columns to read; None reads all that can be read.

    Raises:
        FileRefused: ``arrow-broken`` with the row after which it breaks off.
        OSError: The file cannot be read.
    """
    wanted = [name for name in layout.columns if columns is None or name in columns]
    pa = load_pyarrow()
    number = 1
    with _opened(path) as (_, batches):
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError) as error:
                message = f"breaks off after row {number - 1}: {shown(error)}"
                raise FileRefused("arrow-broken", message, remedy=_REMEDY) from error
            if batch is None:
                return
            yield from _iterate_valid(batch.select(wanted), layout, limits, number)
            number += batch.num_rows


def _iterate_valid(
    batch: Any, layout: TableLayout, limits: IntakeLimits, number: int
) -> Iterator[RawRow | UnreadableRow]:
    pa = load_pyarrow()
    try:
        batch.validate(full=True)
    except pa.ArrowException:
        for place in range(batch.num_rows):
            row = batch.slice(place, 1)
            try:
                row.validate(full=True)
            except pa.ArrowException as error:
                fault = RowFault("value-invalid", f"the row is not valid Arrow: {shown(error)}")
                yield UnreadableRow(number + place, fault)
            else:
                yield from iterate_batch(row, layout, limits, first_number=number + place)
    else:
        yield from iterate_batch(batch, layout, limits, first_number=number)


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Give the schema and the batches of a file or a stream."""
    pa, ipc = load_pyarrow(), load_pyarrow("pyarrow.ipc")
    with path.open("rb") as file:
        is_file = file.read(len(_FILE_MAGIC)) == _FILE_MAGIC
    try:
        with pa.memory_map(str(path), "r") as source:
            if is_file:
                reader = ipc.open_file(source)
                yield reader.schema, (reader.get_batch(place) for place in range(reader.num_record_batches))
            else:
                reader = ipc.open_stream(source)
                yield reader.schema, iter(reader)
    except pa.ArrowException as error:
        message = f"is no Arrow file that can be read: {shown(error)}"
        raise FileRefused("arrow-broken", message, remedy=_REMEDY) from error
