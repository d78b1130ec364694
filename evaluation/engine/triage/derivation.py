"""Can a quantity be worked out from the quantities of an input? The relation that is found is evidence.

A relation may hold by chance: among many numbers some pair gives almost any small one. So the search says
what share of numbers near the wanted one it could have reached as well; a high share makes it worthless.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from evaluation.engine.triage.quantities import Quantities

MAX_NUMBERS: Final = 14
"""Only the first so many numbers of an input are combined."""

WINDOW_FRACTION: Final = 0.5
"""Numbers count as near when they differ by at most this fraction of the wanted one."""

MAX_WINDOW_STEPS: Final = 2000
MAX_DECIMALS: Final = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """A relation that gives the wanted quantity.

    Attributes:
        text: The relation, such as ``12 x 8 = 96``.
        chance_fraction: Share (0-1) of the quantities near the wanted one that a relation of this kind
            reaches from the same input.
    """

    text: str
    chance_fraction: float


@dataclass(frozen=True, slots=True)
class _Reached:
    value: float
    text: str


def derive_number(target: float, given: Quantities) -> Derivation | None:
    """Look for a relation between the input's quantities that gives a number.

    Looks at two numbers first (also as percentages), then at sums, means and three numbers, then at spans
    between dates and times. Rounding to the decimals of the wanted number is allowed.
    """
    numbers = given.numbers[:MAX_NUMBERS]
    decimals = _num_decimals(target)
    percents = tuple(number for number in given.percents if number in numbers)
    reaches = (
        itertools.chain(_reach_pairs(numbers), _reach_percents(numbers, percents)),
        _reach_lists(numbers),
        _reach_spans(given),
        itertools.chain(_reach_triples(numbers), _reach_percents_of_pairs(numbers, percents)),
    )
    for reach in reaches:
        found = _search(target, decimals, list(reach))
        if found is not None:
            return found
    return None


def derive_date(target: date, given: Quantities) -> Derivation | None:
    """Look for a date and a number of days or weeks of the input that give a date."""
    steps = [(number, unit) for number in given.numbers[:MAX_NUMBERS] for unit in (1, 7)]
    reached = {
        date.fromordinal(start.toordinal() + sign * int(number) * unit): (start, sign, number, unit)
        for start in given.dates
        for number, unit in steps
        for sign in (1, -1)
        if number == int(number) and 0 < number * unit < 40_000 and _is_date(start, sign * int(number) * unit)
    }
    if target not in reached:
        return None
    start, sign, number, unit = reached[target]
    word = "days" if unit == 1 else "weeks"
    near = [day for day in reached if abs((day - target).days) <= 30]
    text = f"{start.isoformat()} {'+' if sign > 0 else '-'} {number:g} {word} = {target.isoformat()}"
    return Derivation(text=text, chance_fraction=round(min(len(near) / 61, 1.0), 3))


def _is_date(start: date, days: int) -> bool:
    return date.min.toordinal() <= start.toordinal() + days <= date.max.toordinal()


def _search(target: float, decimals: int, reached: Sequence[_Reached]) -> Derivation | None:
    hits = [item for item in reached if _is_same(item.value, target, decimals)]
    if not hits:
        return None
    # Some other relation that has to be rounded may come first.
    hit = next((item for item in hits if math.isclose(item.value, target, rel_tol=1e-9)), hits[0])
    return Derivation(
        text=f"{hit.text} = {_shown(target)}", chance_fraction=_chance(target, decimals, reached)
    )


def _chance(target: float, decimals: int, reached: Sequence[_Reached]) -> float:
    """The share of the grid of numbers with the same decimals around the target that was reached as well."""
    step = 10.0**-decimals
    reach = min(max(abs(target) * WINDOW_FRACTION, 2 * step), MAX_WINDOW_STEPS * step / 2)
    num_grid = 2 * round(reach / step) + 1
    near = {
        round(item.value, decimals)
        for item in reached
        if math.isfinite(item.value) and abs(item.value - target) <= reach
    }
    return round(min(len(near) / num_grid, 1.0), 4)


def _is_same(value: float, target: float, decimals: int) -> bool:
    return math.isfinite(value) and abs(value - target) <= 0.5 * 10.0**-decimals * (1 + 1e-9)


def _num_decimals(value: float) -> int:
    text = f"{value:.{MAX_DECIMALS}f}".rstrip("0")
    return len(text.partition(".")[2])


_PAIR_OPERATIONS: Final[tuple[tuple[str, Callable[[float, float], float]], ...]] = (
    ("{a} + {b}", lambda a, b: a + b),
    ("{a} - {b}", lambda a, b: a - b),
    ("{a} x {b}", lambda a, b: a * b),
    ("{a} / {b}", lambda a, b: a / b if b else math.inf),
    ("100 x {a} / {b}", lambda a, b: 100 * a / b if b else math.inf),
    ("100 x ({a} - {b}) / {b}", lambda a, b: 100 * (a - b) / b if b else math.inf),
)

_PERCENT_OPERATIONS: Final[tuple[tuple[str, Callable[[float, float], float]], ...]] = (
    ("{a} x {b} %", lambda a, b: a * b / 100),
    ("{a} + {b} %", lambda a, b: a * (1 + b / 100)),
    ("{a} - {b} %", lambda a, b: a * (1 - b / 100)),
)

_TRIPLE_OPERATIONS: Final[tuple[tuple[str, Callable[[float, float, float], float]], ...]] = (
    ("{a} x {b} + {c}", lambda a, b, c: a * b + c),
    ("{a} x {b} - {c}", lambda a, b, c: a * b - c),
    ("{a} x {b} x {c}", lambda a, b, c: a * b * c),
    ("({a} + {b}) x {c}", lambda a, b, c: (a + b) * c),
    ("({a} - {b}) x {c}", lambda a, b, c: (a - b) * c),
    ("({a} + {b}) / {c}", lambda a, b, c: (a + b) / c if c else math.inf),
    ("({a} - {b}) / {c}", lambda a, b, c: (a - b) / c if c else math.inf),
    ("{a} + {b} - {c}", lambda a, b, c: a + b - c),
    ("{a} - {b} - {c}", lambda a, b, c: a - b - c),
)


def _reach_pairs(numbers: Sequence[float]) -> Iterator[_Reached]:
    for a, b in itertools.permutations(numbers, 2):
        for form, operate in _PAIR_OPERATIONS:
            yield _Reached(operate(a, b), form.format(a=_shown(a), b=_shown(b)))


def _reach_percents(numbers: Sequence[float], percents: Sequence[float]) -> Iterator[_Reached]:
    for a, b in itertools.product(numbers, percents):
        for form, operate in _PERCENT_OPERATIONS:
            yield _Reached(operate(a, b), form.format(a=_shown(a), b=_shown(b)))


def _reach_percents_of_pairs(numbers: Sequence[float], percents: Sequence[float]) -> Iterator[_Reached]:
    for (a, b), c in itertools.product(itertools.combinations(numbers, 2), percents):
        for whole, text in ((a * b, f"{_shown(a)} x {_shown(b)}"), (a + b, f"({_shown(a)} + {_shown(b)})")):
            for form, operate in _PERCENT_OPERATIONS:
                yield _Reached(operate(whole, c), form.format(a=text, b=_shown(c)))


def _reach_lists(numbers: Sequence[float]) -> Iterator[_Reached]:
    for start, end in itertools.combinations(range(len(numbers) + 1), 2):
        run = numbers[start:end]
        if len(run) >= 3:
            listed = " + ".join(map(_shown, run))
            yield _Reached(sum(run), listed)
            yield _Reached(sum(run) / len(run), f"({listed}) / {len(run)}")
    if len(numbers) == 2:
        yield _Reached(sum(numbers) / 2, f"({_shown(numbers[0])} + {_shown(numbers[1])}) / 2")
    for position, b in enumerate(numbers[:-1]):
        rest = numbers[position + 1 :]
        if len(rest) >= 2:
            yield _Reached(b - sum(rest), " - ".join(map(_shown, (b, *rest))))
    # An order: so many of this at that price, so many of that.
    products = list(zip(numbers[0::2], numbers[1::2], strict=False))
    for num_products in range(2, len(products) + 1):
        chosen = products[:num_products]
        text = " + ".join(f"{_shown(a)} x {_shown(b)}" for a, b in chosen)
        yield _Reached(sum(a * b for a, b in chosen), text)


def _reach_triples(numbers: Sequence[float]) -> Iterator[_Reached]:
    for a, b, c in itertools.permutations(numbers, 3):
        for form, operate in _TRIPLE_OPERATIONS:
            yield _Reached(operate(a, b, c), form.format(a=_shown(a), b=_shown(b), c=_shown(c)))


def _reach_spans(given: Quantities) -> Iterator[_Reached]:
    for first, second in itertools.combinations(sorted(given.dates), 2):
        days = (second - first).days
        span = f"{first.isoformat()} to {second.isoformat()}"
        yield _Reached(float(days), f"days from {span}")
        yield _Reached(float(days + 1), f"days from {span}, both counted")
        yield _Reached(days / 7, f"weeks from {span}")
        if (second.month, second.day) >= (first.month, first.day):
            yield _Reached(float(second.year - first.year), f"years from {span}")
        else:
            yield _Reached(float(second.year - first.year - 1), f"years from {span}")
    for start, end in itertools.permutations(given.minutes, 2):
        minutes = (end - start) % (24 * 60)
        yield _Reached(float(minutes), f"minutes from {_clock(start)} to {_clock(end)}")
        yield _Reached(minutes / 60, f"hours from {_clock(start)} to {_clock(end)}")


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _shown(value: float) -> str:
    return f"{value:.{MAX_DECIMALS}f}".rstrip("0").rstrip(".")
