"""How many examples of each kind make up a mix."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MixAmounts:
    """Numbers of examples to draw.

    Attributes:
        general: From the general data.
        unchanged: From the pool of unchanged examples.
        wanted_general: What ``general`` would be if there were enough.
        wanted_unchanged: What ``unchanged`` would be if there were enough.
    """

    general: int
    unchanged: int
    wanted_general: int
    wanted_unchanged: int


def compute_amounts(
    *,
    num_changed: int,
    num_unchanged: int,
    num_general: int,
    available_general: int,
    available_unchanged: int,
    general_fraction: float,
    unchanged_fraction: float,
) -> MixAmounts:
    """Return what to draw so that both kinds have their fractions of the whole.

    Of a whole of n, (1 - general - unchanged) n are the task's other examples. What the task has of each kind
    already counts; nothing is taken away where it has more. Where unchanged examples are too few, the general
    fraction is that of the smaller whole.

    Args:
        num_changed: Examples of the task that are neither unchanged nor general.
        num_unchanged: Unchanged ones of the task.
        num_general: General ones in the task's data.
        available_general: General data to draw from, without repeating any.
        available_unchanged: Pool of unchanged examples to draw from, likewise.
        general_fraction: Of the whole, at least 0.
        unchanged_fraction: Of the whole, at least 0; both together below 1.

    Raises:
        ValueError: A fraction is out of range.
    """
    if min(general_fraction, unchanged_fraction) < 0.0 or general_fraction + unchanged_fraction >= 1.0:
        raise ValueError(
            "general_fraction and unchanged_fraction must be at least 0 and together below 1, "
            f"not {general_fraction} and {unchanged_fraction}"
        )
    whole = num_changed / (1.0 - general_fraction - unchanged_fraction)
    wanted_unchanged = max(0, round(unchanged_fraction * whole) - num_unchanged)
    unchanged = min(wanted_unchanged, available_unchanged)
    others = num_changed + num_unchanged + unchanged
    wanted_general = max(0, round(others * general_fraction / (1.0 - general_fraction)) - num_general)
    return MixAmounts(
        general=min(wanted_general, available_general),
        unchanged=unchanged,
        wanted_general=wanted_general,
        wanted_unchanged=wanted_unchanged,
    )
