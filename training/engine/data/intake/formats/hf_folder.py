"""Folders of Hugging Face datasets, read as files: saved to disk, or laid out as on the Hub.

Nothing of such a folder is ever executed, and nothing is fetched: a loading script is left out.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from registry.artifacts.findings import shown, shown_list
from registry.artifacts.json_files import JsonFileError, load_json_object
from training.engine.data.intake.rows import FileRefused

STATE_FILE = "state.json"
INFO_FILE = "dataset_info.json"
DICT_FILE = "dataset_dict.json"
METADATA_FILES = frozenset({STATE_FILE, INFO_FILE, DICT_FILE, "dataset_infos.json", "schema.json"})
"""JSON files that describe data; ``schema.json`` is what this product's own datasets call their schema."""

_PLAIN_NAME = re.compile(r"[^/\\\x00]{1,255}")
_SHARD = re.compile(r"(?P<split>[^/]+?)-\d{5}-of-\d{5}")
_WORD = re.compile(r"[a-z0-9]+")
_SPLIT_WORDS: Mapping[str, str] = {
    "train": "train",
    "training": "train",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "test": "test",
    "testing": "test",
    "eval": "test",
    "evaluation": "test",
}
"""Words that name a split in a file's or folder's name, as Hugging Face datasets reads them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedShard:
    """One Arrow file of a dataset that was saved to disk.

    Attributes:
        path: Where it lies.
        name: Relative to the folder that was given.
        split: None when the dataset does not say.
        features: ``features`` of the dataset's description; empty when there is none.
    """

    path: Path
    name: str
    split: str | None
    features: Mapping[str, Any] = field(default_factory=dict)


def find_saved_shards(folder: Path) -> tuple[SavedShard, ...] | None:
    """Return the shards of a folder that ``save_to_disk`` made, in its order; None when it is no such folder.

    Raises:
        FileRefused: ``saved-dataset-broken`` when its description or a shard is missing or odd.
    """
    if (folder / DICT_FILE).is_file():
        splits = _load(folder / DICT_FILE).get("splits")
        if not isinstance(splits, list) or not splits:
            raise _broken(DICT_FILE, "does not list its splits")
        return tuple(shard for split in splits for shard in _read_split(folder, split))
    if (folder / STATE_FILE).is_file():
        return tuple(_iterate_shards(folder, "", None))
    return None


def find_split(name: str) -> str | None:
    """Return the split that a file's relative name speaks of; None when it names none, or several.

    The last part of the name that names a split decides: the file before its folders.
    """
    *folders, last = name.split("/")
    stem = last.split(".")[0]
    shard = _SHARD.fullmatch(stem)
    if shard:
        words = _find_words(shard["split"])
        return words.pop() if len(words) == 1 else shard["split"]
    for part in (stem, *reversed(folders)):
        words = _find_words(part)
        if words:
            return words.pop() if len(words) == 1 else None
    return None


def _find_words(part: str) -> set[str]:
    return {_SPLIT_WORDS[word] for word in _WORD.findall(part.lower()) if word in _SPLIT_WORDS}


def _read_split(folder: Path, split: Any) -> Iterator[SavedShard]:
    if not isinstance(split, str) or not _is_plain(split) or not (folder / split / STATE_FILE).is_file():
        raise _broken(DICT_FILE, f"names the split {shown(split)!r}, which has no {STATE_FILE}")
    yield from _iterate_shards(folder / split, f"{split}/", split)


def _iterate_shards(folder: Path, prefix: str, split: str | None) -> Iterator[SavedShard]:
    state = _load(folder / STATE_FILE)
    listed = state.get("_data_files")
    names = (
        [item.get("filename") for item in listed if isinstance(item, dict)]
        if isinstance(listed, list)
        else []
    )
    if not names:
        raise _broken(f"{prefix}{STATE_FILE}", "lists no _data_files")
    plain = [name for name in names if isinstance(name, str) and _is_plain(name)]
    missing = [name for name in names if name not in plain or not (folder / name).is_file()]
    if missing:
        raise _broken(f"{prefix}{STATE_FILE}", f"lists files that are not there: {shown_list(missing)}")
    if state.get("_indices_data_files"):
        raise _broken(f"{prefix}{STATE_FILE}", "chooses rows by an index file, which is not read")
    info = _load(folder / INFO_FILE) if (folder / INFO_FILE).is_file() else {}
    features = info.get("features")
    named = state.get("_split")
    for name in plain:
        yield SavedShard(
            path=folder / name,
            name=f"{prefix}{name}",
            split=split or (named if isinstance(named, str) and named else None),
            features=features if isinstance(features, dict) else {},
        )


def _is_plain(name: str) -> bool:
    return _PLAIN_NAME.fullmatch(name) is not None and name not in (".", "..")


def _load(path: Path) -> dict[str, Any]:
    try:
        return load_json_object(path)
    except JsonFileError as error:
        raise _broken(path.name, f"cannot be read: {error}") from error


def _broken(where: str, what: str) -> FileRefused:
    remedy = "Save the dataset again with save_to_disk."
    return FileRefused("saved-dataset-broken", what, where=shown(where), remedy=remedy)
