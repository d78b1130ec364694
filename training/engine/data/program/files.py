"""Reading recipes and finding inputs that a command line names."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from training.engine.atomic_folder import atomic_folder
from training.engine.config_files import read_config_object
from training.engine.errors import ConfigInvalid, DataInvalid


def read_recipe_file(path: Path | None) -> dict[str, Any]:
    """Return the content of a recipe: YAML, TOML or JSON by the file's ending; {} for None.

    Raises:
        ConfigInvalid: ``recipe-unreadable``.
    """
    if path is None:
        return {}
    try:
        return read_config_object(path)
    except ConfigInvalid as error:
        raise ConfigInvalid("recipe-unreadable", error.message) from error


def read_columns(pairs: Sequence[str]) -> dict[str, str]:
    """Return ``meaning=column`` pairs as a mapping.

    Raises:
        ConfigInvalid: ``column-option-invalid`` for one without an equals sign.
    """
    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        message = f"--column takes MEANING=COLUMN, such as input=question; not {', '.join(wrong)}"
        raise ConfigInvalid("column-option-invalid", message)
    return dict(pair.split("=", 1) for pair in pairs)


def merge_options(recipe: Mapping[str, Any], **parts: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a recipe in which options of the command line take the place of what the file says.

    Args:
        recipe: From the file.
        parts: For each section the options given; ones that are None were not given.
    """
    merged = dict(recipe)
    for section, options in parts.items():
        given = {name: value for name, value in (options or {}).items() if value is not None}
        if given:
            present = merged.get(section)
            merged[section] = {**(present if isinstance(present, Mapping) else {}), **given}
    return merged


def name_sets(paths: Sequence[Path]) -> dict[str, Path]:
    """Return files by the names of their stems, as the columns and rows of an overlap table.

    Raises:
        DataInvalid: ``set-name-twice`` when two files have one stem.
    """
    named: dict[str, Path] = {}
    for path in paths:
        name = path.stem if path.is_file() else path.name
        if name in named:
            raise DataInvalid(
                "set-name-twice", f"{named[name]} and {path} would both be called {name}; rename one."
            )
        named[name] = path
    return named


@contextmanager
def output_folder(target: Path) -> Iterator[Path]:
    """Give a folder that takes the target's name at the end, or vanishes after a fault.

    Raises:
        DataInvalid: ``target-not-empty``.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise DataInvalid("target-not-empty", f"{target} exists and is not an empty folder; name another.")
    with atomic_folder(target) as partial:
        yield partial
