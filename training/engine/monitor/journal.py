"""What a monitor has seen, kept on disk so that it survives a break together with the checkpoints.

One JSON line for each step and each measurement. A resumed run reads what lies before its checkpoint; lines
of steps that are done again are left out.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from training.engine.step_record import HeldOutRecord, StepRecord

_STEP: Final = "step"
_HELD_OUT: Final = "held_out"


class StepJournal:
    """A file of records.

    Args:
        path: The file, beside the checkpoints (``JobTask.kept``); made when the first record comes. An
            earlier attempt's is taken over when its records reach without a gap to where this one begins.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def take_over(self, *, before_step: int) -> list[StepRecord | HeldOutRecord]:
        """Return what was seen before a step, and forget the rest of the file.

        Args:
            before_step: First step of this attempt.

        Returns:
            The records of steps 1 to ``before_step - 1`` in order; [] when the file does not hold all of
            them.
        """
        steps: dict[int, list[StepRecord | HeldOutRecord]] = {}
        for record in self._iterate_records():
            if isinstance(record, StepRecord):
                steps[record.step] = [record]
            elif record.step in steps:
                steps[record.step].append(record)
        is_whole = all(step in steps for step in range(1, before_step))
        known = [record for step in range(1, before_step) for record in steps[step]] if is_whole else []
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".draft")
        draft.write_text("".join(_to_line(record) for record in known), encoding="utf-8")
        draft.replace(self._path)
        return known

    def append(self, record: StepRecord | HeldOutRecord) -> None:
        """Add a record; a process that is killed loses at most this one."""
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_to_line(record))

    def _iterate_records(self) -> Iterator[StepRecord | HeldOutRecord]:
        try:
            lines = self._path.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            return
        for line in lines:
            try:
                yield _read(json.loads(line))
            except (ValueError, TypeError, KeyError):
                continue  # A line that was being written when the process ended; a gap is noticed later.


def _to_line(record: StepRecord | HeldOutRecord) -> str:
    kind = _STEP if isinstance(record, StepRecord) else _HELD_OUT
    return json.dumps({kind: asdict(record)}) + "\n"


def _read(raw: Any) -> StepRecord | HeldOutRecord:
    return StepRecord(**raw[_STEP]) if _STEP in raw else HeldOutRecord(**raw[_HELD_OUT])
