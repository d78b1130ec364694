"""Typed readers of environment variables: the only place that looks at `os.environ` for settings.

A value that cannot be read raises `EnvError`, which names the variable, what was found and what is
expected, so a server never starts on a misread setting.
"""

import os
from pathlib import Path

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


class EnvError(ValueError):
    """An environment variable is missing or cannot be read."""


def get_str(name: str, default: str | None = None) -> str:
    """The variable's text; without a default an unset or empty variable is an `EnvError`."""
    value = os.environ.get(name, "")
    if value:
        return value
    if default is None:
        raise EnvError(f"{name} is not set; set it to a non-empty text.")
    return default


def get_bool(name: str, default: bool) -> bool:
    """True for 1/true/yes/on, False for 0/false/no/off, in any case."""
    value = os.environ.get(name, "").strip().lower()
    if not value:
        return default
    if value in _TRUE:
        return True
    if value in _FALSE:
        return False
    raise EnvError(f"{name}={value!r} is not a truth value; use one of 1, 0, true, false, yes, no, on, off.")


def get_int(name: str, default: int, *, minimum: int | None = None, maximum: int | None = None) -> int:
    """A whole number within the bounds, both inclusive."""
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    try:
        value = int(text)
    except ValueError as error:
        raise EnvError(f"{name}={text!r} is not a whole number.") from error
    _check_bounds(name, value, minimum, maximum)
    return value


def get_float(
    name: str, default: float, *, minimum: float | None = None, maximum: float | None = None
) -> float:
    """A finite number within the bounds, both inclusive."""
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    try:
        value = float(text)
    except ValueError as error:
        raise EnvError(f"{name}={text!r} is not a number.") from error
    if value != value or value in (float("inf"), float("-inf")):
        raise EnvError(f"{name}={text!r} is not a finite number.")
    _check_bounds(name, value, minimum, maximum)
    return value


def get_list(name: str, default: tuple[str, ...] = ()) -> list[str]:
    """Items separated by commas, blanks around them dropped, empty ones left out."""
    text = os.environ.get(name, "")
    if not text.strip():
        return list(default)
    return [item.strip() for item in text.split(",") if item.strip()]


def get_choice(name: str, default: str, choices: tuple[str, ...]) -> str:
    """One of the given words."""
    value = os.environ.get(name, "").strip() or default
    if value not in choices:
        raise EnvError(f"{name}={value!r} is unknown; use one of {', '.join(choices)}.")
    return value


def get_path(name: str, default: Path) -> Path:
    """An absolute path; `~` is expanded and a relative one is taken from the working directory."""
    text = os.environ.get(name, "").strip()
    return (Path(text).expanduser() if text else default).resolve()


def _check_bounds(name: str, value: float, minimum: float | None, maximum: float | None) -> None:
    if minimum is not None and value < minimum:
        raise EnvError(f"{name}={value} is below the smallest allowed value, {minimum}.")
    if maximum is not None and value > maximum:
        raise EnvError(f"{name}={value} is above the largest allowed value, {maximum}.")
