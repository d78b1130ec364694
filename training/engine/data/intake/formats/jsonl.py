"""Lines of JSON: one object a line, blank lines passed over, each line bounded and decoded by itself."""

from collections.abc import Iterator

from training.engine.data.intake.formats.text_file import TextFile
from training.engine.data.intake.rows import RawRow, RowFault, UnreadableRow, make_excerpt
from training.engine.data.intake.strict_json import parse_row


def read_jsonl(file: TextFile) -> Iterator[RawRow | UnreadableRow]:
    """Yield the rows of a JSONL file.

    A line is split from the next at the line feed only: U+2028 and its like belong to the texts.

    Args:
        file: With its encoding and limits; not more than one line is held at a time.

    Raises:
        FileRefused: The decompression fails.
        OSError: The file cannot be read.
    """
    number = 0
    for line in file.iterate_lines():
        place = f"line {line.number}"
        if line.data is None:
            number += 1
            yield UnreadableRow(number, file.too_long(line.num_bytes), place, make_excerpt(line.head))
            continue
        if not line.data.strip(b" \t\r\n\x00" if file.encoding.name.startswith("utf-16") else b" \t\r\n"):
            continue
        number += 1
        try:
            text = file.encoding.decode_line(line.data, line.offset)
            yield RawRow(number, parse_row(text, max_depth=file.limits.max_json_depth), place)
        except RowFault as fault:
            yield UnreadableRow(number, fault, place, make_excerpt(line.data))
