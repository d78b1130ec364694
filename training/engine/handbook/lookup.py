"""Looking things up in the handbook: the treatment of a row, and the rows that a check belongs to."""

import functools
from collections.abc import Mapping
from typing import Final

from training.engine.handbook.entries import HandbookEntry, read_handbook
from training.engine.handbook.rows import HandbookRow

_LANGUAGE: Final = "en"


@functools.cache
def _entries() -> Mapping[HandbookRow, HandbookEntry]:
    return {entry.code: entry for entry in read_handbook(_LANGUAGE)}


def get_treatment(row: HandbookRow, index: int = 0) -> str:
    """Return what to do about a row, in English.

    Args:
        row: The row.
        index: Which of its treatments; 0 is the first one. Another is given where the evidence rules out the
            cause that the first one treats.
    """
    return _entries()[row].treatment[index]


def get_rows(detector: str) -> tuple[HandbookRow, ...]:
    """Return the rows that a rule or check recognises, in the order of the handbook; () for an unknown one.

    Args:
        detector: Code with the part that it belongs to, such as "chat/double-bos" or "data/answers-shifted".
    """
    return tuple(row for row, entry in _entries().items() if detector in entry.detectors)
