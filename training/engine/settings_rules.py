"""Reading settings that people write: each key has a rule, and all faults come at once."""

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from registry.artifacts.findings import shown
from training.engine.errors import Fault


@dataclass(frozen=True, slots=True)
class Rule:
    """What a value must be; ``read`` gives the value or raises ValueError."""

    expected: str
    read: Callable[[Any], Any]


def number(low: float, high: float, *, low_open: bool = False, high_open: bool = False) -> Rule:
    """Return the rule of a finite number in a range; the bounds belong to it unless they are open."""

    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError
        if value < low or value > high or (low_open and value == low) or (high_open and value == high):
            raise ValueError
        return float(value)

    lower, upper = (">" if low_open else ">="), ("<" if high_open else "<=")
    return Rule(f"a number {lower} {low:g}" + ("" if math.isinf(high) else f" and {upper} {high:g}"), read)


def count(low: int, high: int | None = None) -> Rule:
    """Return the rule of a whole number from low to high, both included; None is no upper bound."""

    def read(value: Any) -> int:
        if (
            isinstance(value, bool)
            or not isinstance(value, int)
            or value < low
            or (high is not None and value > high)
        ):
            raise ValueError
        return value

    return Rule(f"a whole number >= {low}" + ("" if high is None else f" and <= {high}"), read)


def choice(*values: str) -> Rule:
    """Return the rule of one text out of several."""

    def read(value: Any) -> str:
        if value not in values:
            raise ValueError
        return str(value)

    return Rule("one of " + ", ".join(values), read)


def optional(rule: Rule) -> Rule:
    """Return a rule that also takes null."""
    return Rule(f"{rule.expected} or null", lambda value: None if value is None else rule.read(value))


def _read_flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def _read_text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value


def _read_names(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple) or not value or len(set(map(str, value))) != len(value):
        raise ValueError
    return tuple(_read_text(item) for item in value)


def _read_texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError
    return tuple(_read_text(item) for item in value)


FLAG = Rule("true or false", _read_flag)
TEXT = Rule("a text", _read_text)
NAMES = Rule("a list of different names", _read_names)
"""A list that is not empty, without repeats."""
TEXTS = Rule("a list of texts", _read_texts)
"""A list, which may be empty."""


def read_section(section: str, raw: Any, rules: Mapping[str, Rule], faults: list[Fault]) -> dict[str, Any]:
    """Return the valid values that are given; faults go to the list.

    Args:
        section: Name of the section, for the places of the faults.
        raw: What was written.
        rules: A rule for each known key.
        faults: Takes unknown keys and wrong values.
    """
    if not isinstance(raw, Mapping):
        faults.append(Fault(code="wrong-type", message="must be an object", where=section))
        return {}
    values: dict[str, Any] = {}
    for key, value in raw.items():
        where = f"{section}.{shown(key)}"
        rule = rules.get(key)
        if rule is None:
            faults.append(unknown_key(shown(key), where, list(rules)))
            continue
        try:
            values[key] = rule.read(value)
        except ValueError:
            message = f"is {shown(repr(value))}, must be {rule.expected}"
            faults.append(Fault(code="invalid-value", message=message, where=where))
    return values


def unknown_key(key: str, where: str, known: list[str]) -> Fault:
    """Name the near misses of an unknown key."""
    near = difflib.get_close_matches(key, known, n=1)
    remedy = f"Did you mean {near[0]}?" if near else f"Known are {', '.join(known)}."
    return Fault(code="unknown-key", message=f"unknown key. {remedy}", where=where, remedy=remedy)
