"""Which files of a path are raw data, in which format, and what is left out of a folder and why."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from registry.artifacts.findings import Finding, shown, shown_list
from training.engine.data.intake.building import GENERAL
from training.engine.data.intake.formats.hf_folder import METADATA_FILES, find_saved_shards, find_split
from training.engine.data.intake.ids import make_stem
from training.engine.data.intake.rows import FileRefused
from training.engine.data.intake.settings import AUTO, IntakeSettings

MAX_FILES = 10_000
MAX_FOLDER_DEPTH = 6

FORMATS_BY_ENDING: Mapping[str, str] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
}
TEXT_FORMATS = frozenset({"jsonl", "json", "csv", "tsv"})

_GZIP_MAGIC = b"\x1f\x8b"
_UNREAD_MAGIC: Mapping[bytes, tuple[str, str]] = {
    b"PK\x03\x04": ("a zip file or a spreadsheet", "Unpack it, or save the sheet as CSV in UTF-8."),
    b"\xd0\xcf\x11\xe0": ("an old spreadsheet or document", "Save the sheet as CSV in UTF-8."),
    b"BZh": ("compressed by bzip2", "Decompress it."),
    b"\xfd7zXZ": ("compressed by xz", "Decompress it."),
    b"\x28\xb5\x2f\xfd": ("compressed by zstd", "Decompress it."),
    b"%PDF": ("a PDF", "Extract its rows into CSV or JSONL."),
    b"SQLite format 3": ("a SQLite database", "Export the table as CSV."),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFile:
    """One raw file.

    Attributes:
        path: Where it lies.
        name: Relative to the path that was given, with "/"; of a single file its own name.
        stem: Beginning of made ids; no two files of a path have the same.
        format: One of ``settings.FORMATS``, or "auto" when only its content can tell.
        is_gzip: Whether it is decompressed on the way.
        split: Split it belongs to; None when it belongs to none.
        is_general: Whether it lies in ``general/``.
        features: ``features`` of a saved dataset; empty else.
    """

    path: Path
    name: str
    stem: str
    format: str
    is_gzip: bool = False
    split: str | None = None
    is_general: bool = False
    features: Mapping[str, Any] = field(default_factory=dict)


def list_sources(path: Path, settings: IntakeSettings) -> tuple[tuple[SourceFile, ...], tuple[Finding, ...]]:
    """Return the raw files of a path in the order of reading, and notices of what was left out.

    A dataset that was saved to disk gives its shards in its own order; any other folder gives its files
    sorted by relative name. Links to files are followed, links to folders are not.

    Raises:
        FileRefused: ``data-file-missing``, ``too-many-files``, ``split-unknown``, ``saved-dataset-broken`` or
            ``format-unread``.
    """
    notices: list[Finding] = []
    if path.is_file():
        return tuple(_with_stems([_read_source(path, _plain_name(path.name), settings)])), ()
    if not path.is_dir():
        raise FileRefused("data-file-missing", "is neither a file nor a folder", where=shown(path.name))
    shards = find_saved_shards(path)
    if shards is not None:
        files = [
            SourceFile(
                path=shard.path,
                name=shard.name,
                stem=shard.name,
                format="arrow",
                split=shard.split,
                features=shard.features,
            )
            for shard in shards
        ]
    else:
        files = _list_folder(path, settings, notices)
    if not files:
        message = "holds no raw data file"
        remedy = f"Read are {', '.join(FORMATS_BY_ENDING)}, and the text ones also as .gz."
        raise FileRefused("data-file-missing", message, where=shown(path.name), remedy=remedy)
    files = _choose_splits(files, settings, notices)
    return tuple(_with_stems(files)), tuple(notices)


def find_format(name: str) -> str | None:
    """Return the format that a file's name speaks of; None when it names none."""
    ending = Path(name.lower().removesuffix(".gz")).suffix
    return FORMATS_BY_ENDING.get(ending)


def _read_source(path: Path, name: str, settings: IntakeSettings) -> SourceFile:
    """Tell the format by what is stated, then by the first bytes, then by the name.

    Raises:
        FileRefused: ``format-unread``.
    """
    with path.open("rb") as file:
        head = file.read(16)
    for magic, (what, remedy) in _UNREAD_MAGIC.items():
        if head.startswith(magic):
            raise FileRefused(
                "format-unread", f"is {what}, which is not read", where=shown(name), remedy=remedy
            )
    is_gzip = head.startswith(_GZIP_MAGIC)
    found = find_format(name)
    if settings.format != AUTO:
        found = settings.format
    elif head.startswith(b"PAR1"):
        found = "parquet"
    elif head.startswith(b"ARROW1"):
        found = "arrow"
    if is_gzip and found not in TEXT_FORMATS and found is not None:
        message = f"is {found} compressed by gzip, which is not read"
        raise FileRefused("format-unread", message, where=shown(name), remedy="Decompress it.")
    return SourceFile(path=path, name=name, stem=name, format=found or AUTO, is_gzip=is_gzip)


def _list_folder(folder: Path, settings: IntakeSettings, notices: list[Finding]) -> list[SourceFile]:
    files: list[SourceFile] = []
    left_out: dict[str, list[str]] = {}
    for path, name, reason in _walk(folder):
        reason = reason or _find_reason_to_leave_out(name, settings)
        if reason:
            left_out.setdefault(reason, []).append(name)
            continue
        source = _read_source(path, name, settings)
        is_general = "/" in name and name.split("/")[-2] == GENERAL
        files.append(replace(source, split=find_split(name), is_general=is_general))
        if len(files) > MAX_FILES:
            message = f"holds more than {MAX_FILES} data files"
            raise FileRefused("too-many-files", message, remedy="Join them into larger files.")
    for reason, names in left_out.items():
        message = f"{len(names)} file(s) left out, {_REASONS[reason]}: {shown_list(names)}."
        notices.append(Finding.info(reason, message))
    return files


_REASONS: Mapping[str, str] = {
    "loading-script-left-out": "code is never run",
    "metadata-left-out": "they describe data",
    "hidden-file-left-out": "names that begin with a dot are hidden",
    "linked-folder-left-out": "links to folders are not followed",
    "deep-folder-left-out": f"folders are read {MAX_FOLDER_DEPTH} deep",
    "special-file-left-out": "no regular files",
    "other-file-left-out": "no known data format by their names",
}


def _find_reason_to_leave_out(name: str, settings: IntakeSettings) -> str | None:
    last = name.rsplit("/", 1)[-1]
    if last.endswith((".py", ".pyc", ".ipynb", ".sh")):
        return "loading-script-left-out"
    if last in METADATA_FILES:
        return "metadata-left-out"
    found = find_format(name)
    if found is None and (settings.format == AUTO or _is_companion(last)):
        return "other-file-left-out"
    return None


def _is_companion(last: str) -> bool:
    return last.lower().startswith(("readme", "license", "licence")) or last.lower().endswith(".md")


def _walk(folder: Path) -> Iterator[tuple[Path, str, str | None]]:
    """Yield (path, relative name, why it is left out) of all entries that are no folders, sorted by name."""
    found: list[tuple[Path, str, str | None]] = []
    waiting: list[tuple[Path, str, int]] = [(folder, "", 0)]
    while waiting:
        parent, prefix, depth = waiting.pop()
        with os.scandir(parent) as entries:
            for entry in entries:
                name = prefix + _plain_name(entry.name)
                reason = None
                if entry.name.startswith("."):
                    reason = "hidden-file-left-out"
                elif entry.is_dir(follow_symlinks=False):
                    if depth < MAX_FOLDER_DEPTH:
                        waiting.append((Path(entry.path), f"{name}/", depth + 1))
                        continue
                    reason = "deep-folder-left-out"
                elif entry.is_dir():
                    reason = "linked-folder-left-out"
                elif not entry.is_file():
                    # Opening a named pipe would wait for ever.
                    reason = "special-file-left-out"
                found.append((Path(entry.path), name, reason))
        if len(found) > 10 * MAX_FILES:
            raise FileRefused("too-many-files", f"holds more than {10 * MAX_FILES} entries")
    yield from sorted(found, key=lambda item: item[1])


def _choose_splits(
    files: list[SourceFile], settings: IntakeSettings, notices: list[Finding]
) -> list[SourceFile]:
    seen = Counter(file.split for file in files if file.split is not None)
    if settings.splits is None:
        if len(seen) > 1:
            listed = shown_list(sorted(seen))
            message = f"Several splits are read together: {listed}; origin.split tells them apart."
            remedy = "State splits to read one of them; a test split must not be trained on."
            notices.append(Finding.warning("several-splits", message, remedy=remedy))
        return files
    unknown = [split for split in settings.splits if split not in seen]
    if unknown:
        message = f"has no split {shown_list(unknown)}; it has {shown_list(sorted(seen)) or 'none'}"
        raise FileRefused("split-unknown", message)
    chosen = [file for file in files if file.split is None or file.split in settings.splits]
    left_out = [file.name for file in files if file not in chosen]
    if left_out:
        message = f"{len(left_out)} file(s) of other splits left out: {shown_list(left_out)}."
        notices.append(Finding.info("split-left-out", message))
    return chosen


def _with_stems(files: Sequence[SourceFile]) -> Iterator[SourceFile]:
    """Give every file the beginning of its made ids: its name without ending, told apart where two agree."""
    stems = [make_stem(_without_ending(file.name)) for file in files]
    counts = Counter(stems)
    for file, stem in zip(files, stems, strict=True):
        yield replace(file, stem=make_stem(file.name, is_shared=True) if counts[stem] > 1 else stem)


def _without_ending(name: str) -> str:
    plain = name.removesuffix(".gz")
    return plain.removesuffix(Path(plain).suffix) or name


def _plain_name(name: str) -> str:
    """Return a file name as text that can be written: bytes that are no UTF-8 are replaced."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
