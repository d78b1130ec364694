"""The last steps of a training, for those who ask why the next one failed. No torch here."""

from collections import deque
from typing import Final

from training.engine.step_record import HeldOutRecord, StepRecord

HISTORY_STEPS: Final = 20


class StepHistory:
    """An observer that keeps the last `HISTORY_STEPS` steps."""

    def __init__(self) -> None:
        self._records: deque[StepRecord] = deque(maxlen=HISTORY_STEPS)

    @property
    def records(self) -> tuple[StepRecord, ...]:
        """Those kept, ascending."""
        return tuple(self._records)

    def on_step(self, record: StepRecord) -> None:
        """Keep a step."""
        self._records.append(record)

    def on_held_out(self, record: HeldOutRecord) -> None:
        """Ignore a measurement."""
