"""Mixing general instruction data into a task's data, against forgetting (MISSION C4). No torch here."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class MixedRows:
    """Training rows in random order.

    Attributes:
        rows: Task rows as they were; general rows with ``"role": "general"``, which keeps the task's system
            prompt away from them in training.
        num_task: Task rows.
        num_general: General rows.
    """

    rows: tuple[dict[str, Any], ...]
    num_task: int
    num_general: int

    @property
    def general_fraction(self) -> float:
        """General rows among all rows, 0-1; less than asked for when there were too few."""
        return self.num_general / len(self.rows) if self.rows else 0.0


def mix_rows(
    task: Sequence[Mapping[str, Any]],
    general: Sequence[Mapping[str, Any]],
    *,
    general_fraction: float,
    seed: int,
) -> MixedRows:
    """Draw general rows without replacement so that they make up a fraction of the whole, and shuffle.

    Args:
        task: All are used.
        general: To draw from; none is used twice.
        general_fraction: Part of the result that is general, 0 <= f < 1; 0.05-0.2 is usual.
        seed: Decides draw and order.

    Raises:
        ValueError: If the fraction is outside its range.
    """
    if not 0.0 <= general_fraction < 1.0:
        raise ValueError(f"general_fraction must be at least 0 and below 1, not {general_fraction}")
    generator = random.Random(seed)  # noqa: S311 (an order, not a secret)
    wanted = round(len(task) * general_fraction / (1.0 - general_fraction))
    drawn = generator.sample(list(general), min(wanted, len(general)))
    rows = [dict(row) for row in task] + [{**row, "role": "general"} for row in drawn]
    generator.shuffle(rows)
    return MixedRows(rows=tuple(rows), num_task=len(task), num_general=len(drawn))
