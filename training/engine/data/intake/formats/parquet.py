"""Parquet files, read in small batches of the wanted columns."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

from registry.artifacts.findings import shown
from training.engine.data.intake.formats.tables import (
    ROWS_PER_BATCH,
    TableLayout,
    describe_schema,
    find_longest_text,
    iterate_batch,
    load_pyarrow,
)
from training.engine.data.intake.rows import FileRefused, RawRow, UnreadableRow
from training.engine.data.intake.settings import IntakeLimits

_PAGE_BUFFER_BYTES = 1 << 20
_TARGET_BATCH_BYTES = 16 << 20
_REMEDY = "Write the file again; it may be cut off."


def find_parquet_layout(path: Path) -> TableLayout:
    """Read the columns out of the file's footer.

    Raises:
        FileRefused: ``pyarrow-missing``, ``parquet-broken`` or ``columns-twice``.
        OSError: The file cannot be opened.
    """
    with _opened(path) as file:
        return describe_schema(file.schema_arrow, num_rows=file.metadata.num_rows)


def read_parquet(
    path: Path, layout: TableLayout, limits: IntakeLimits, *, columns: Collection[str] | None = None
) -> Iterator[RawRow | UnreadableRow]:
    """Yield the rows of a Parquet file, row group by row group in small batches.

    Where one text of a row group's dictionary is long, batches are smaller: a small file whose rows all
    repeat it would fill the memory else. The bound holds on average where lists hold the texts; a single row
    with a very long list of one long text is not foreseen by it.

    Args:
        path: The file.
        layout: See ``find_parquet_layout``.
        limits: Rows that are too long are passed over.
        columns: Columns to read; None reads all that can be read.

    Raises:
        FileRefused: ``parquet-broken`` with the row after which it breaks off.
        OSError: The file cannot be read.
    """
    wanted = [name for name in layout.columns if columns is None or name in columns]
    pa = load_pyarrow()
    number = 1
    with _opened(path) as file, _opened(path, keeps_dictionaries=True) as probe:
        batches = _iterate_batches(file, probe, wanted)
        while True:
            try:
                batch = next(batches, None)
            except (pa.ArrowException, OSError) as error:
                message = f"breaks off after row {number - 1}: {shown(error)}"
                raise FileRefused("parquet-broken", message, remedy=_REMEDY) from error
            if batch is None:
                return
            yield from iterate_batch(batch, layout, limits, first_number=number)
            number += batch.num_rows


def _iterate_batches(file: Any, probe: Any, wanted: list[str]) -> Iterator[Any]:
    for group in range(file.metadata.num_row_groups):
        num_rows = _choose_batch_rows(probe, group, wanted)
        yield from file.iter_batches(
            batch_size=num_rows, row_groups=[group], columns=wanted, use_threads=False
        )


def _choose_batch_rows(probe: Any, group: int, wanted: list[str]) -> int:
    """Return how many rows of a row group can be read at once, judged by the longest text of each dictionary.

    Only the rows of the first batch are read for it, and their texts stay in the dictionaries.
    """
    metadata = probe.metadata.row_group(group)
    chunks = [
        chunk
        for chunk in map(metadata.column, range(metadata.num_columns))
        if chunk.physical_type == "BYTE_ARRAY"
        and chunk.has_dictionary_page
        and chunk.path_in_schema.split(".")[0] in wanted
    ]
    if not chunks:
        return ROWS_PER_BATCH
    batches = probe.iter_batches(
        batch_size=ROWS_PER_BATCH, row_groups=[group], columns=wanted, use_threads=False
    )
    batch = next(batches, None)
    longest = 0 if batch is None else sum(map(find_longest_text, batch.columns))
    items_per_row = max(chunk.num_values for chunk in chunks) / max(1, metadata.num_rows)
    num_rows = _TARGET_BATCH_BYTES / max(1.0, longest * items_per_row)
    return int(min(ROWS_PER_BATCH, max(1.0, num_rows)))


def _opened(path: Path, *, keeps_dictionaries: bool = False) -> Any:
    pa, parquet = load_pyarrow(), load_pyarrow("pyarrow.parquet")
    try:
        texts = None
        if keeps_dictionaries:
            with parquet.ParquetFile(path) as file:
                schema = file.metadata.schema
                columns = map(schema.column, range(file.metadata.num_columns))
                texts = [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]
        # pre_buffer would hold whole row groups.
        return parquet.ParquetFile(
            path, read_dictionary=texts, pre_buffer=False, buffer_size=_PAGE_BUFFER_BYTES
        )
    except pa.ArrowException as error:
        message = f"is no Parquet file that can be read: {shown(error)}"
        raise FileRefused("parquet-broken", message, remedy=_REMEDY) from error
