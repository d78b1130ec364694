r"""Rules for the names of files inside an artifact.

Names come from other machines and become paths on this one, on the machines that pull and in URLs; so a name
that any of them could read differently is refused, with every fault at once. Standard library only.

Valid: ``adapter_config.json``, ``checkpoint-39/model.safetensors``, ``optimizer (8).pt``, ``数据.jsonl``.
Invalid: ``/etc/passwd``, ``../x``, ``a//b``, ``a/./b``, ``a\b``, ``C:/x``, ``CON``, ``a.``, a name with a
line break.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator

from registry.artifacts.findings import Finding, shown

MAX_PATH_CHARS = 255
MAX_SEGMENT_BYTES = 255  # NAME_MAX of the usual Linux file systems
_REMEDY = "Rename the file and send it again."
# Cc control, Cf format (bidirectional overrides, zero-width characters), Cs surrogate, Zl/Zp line and
# paragraph separators.
_FORBIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
_WINDOWS_RESERVED = re.compile(
    r"(con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(\..*)?", re.IGNORECASE
)
_DRIVE = re.compile(r"[A-Za-z]:")


def check_path(path: str) -> list[Finding]:
    """Return every rule that one path breaks; an empty list means that it is valid."""
    return [
        Finding.error(code, message, where=shown(path), remedy=_REMEDY)
        for code, message in _path_faults(path)
    ]


def check_paths(paths: Iterable[str]) -> list[Finding]:
    """Return every fault of an artifact's paths: of each, doubles, case collisions, files used as folders."""
    listed = list(paths)
    findings = [finding for path in listed for finding in check_path(path)]
    findings.extend(_collisions(listed))
    return findings


def is_safe_path(path: str) -> bool:
    """Return whether `path` breaks no rule."""
    return next(_path_faults(path), None) is None


def _path_faults(path: str) -> Iterator[tuple[str, str]]:
    if not path:
        yield "path-empty", "The path is empty."
        return
    if len(path) > MAX_PATH_CHARS:
        yield "path-too-long", f"The path has {len(path)} characters; at most {MAX_PATH_CHARS} are allowed."
    if path.startswith("/") or _DRIVE.match(path):
        yield "path-absolute", "The path is absolute; paths are relative to the artifact's folder."
    if "\\" in path:
        yield "path-backslash", "The path holds a backslash; folders are separated by '/'."
    forbidden = sorted(
        {f"U+{ord(char):04X}" for char in path if unicodedata.category(char) in _FORBIDDEN_CATEGORIES}
    )
    if forbidden:
        yield (
            "path-control-character",
            f"The path holds control or invisible characters: {', '.join(forbidden)}.",
        )
    if not unicodedata.is_normalized("NFC", path):
        yield (
            "path-not-normalised",
            "The path is not in Unicode normal form C, so equal-looking names could differ.",
        )
    yield from _segment_faults(path.removeprefix("/").split("/"))


def _segment_faults(segments: list[str]) -> Iterator[tuple[str, str]]:
    if "" in segments:
        yield "path-empty-segment", "The path has an empty part ('//' or a '/' at the end)."
    if "." in segments or ".." in segments:
        yield "path-traversal", "The path has a part '.' or '..'."
    named = [segment for segment in segments if segment not in ("", ".", "..")]
    if any(len(segment.encode("utf-8", "surrogatepass")) > MAX_SEGMENT_BYTES for segment in named):
        yield (
            "path-segment-too-long",
            f"A part of the path is longer than {MAX_SEGMENT_BYTES} bytes in UTF-8.",
        )
    if any(segment != segment.strip(" ") or segment.endswith(".") for segment in named):
        yield "path-edge-character", "A part of the path begins or ends with a space, or ends with a dot."
    if any(_WINDOWS_RESERVED.fullmatch(segment) for segment in named):
        yield "path-reserved-name", "A part of the path is a reserved name on Windows (CON, NUL, COM1, …)."


def _collisions(paths: list[str]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for path in paths:
        key = unicodedata.normalize("NFC", path).casefold()
        if key not in seen:
            seen[key] = path
            continue
        other = seen[key]
        if other == path:
            yield Finding.error(
                "path-duplicate", "The path is listed twice.", where=shown(path), remedy=_REMEDY
            )
        else:
            message = (
                f"The path differs from {shown(other)!r} only in case; some file systems keep one of them."
            )
            yield Finding.error("path-case-collision", message, where=shown(path), remedy=_REMEDY)
    for key, path in seen.items():
        parent = key
        while "/" in parent:
            parent = parent.rpartition("/")[0]
            if parent in seen:
                message = f"{shown(seen[parent])!r} is listed as a file and used as a folder."
                yield Finding.error("path-file-and-folder", message, where=shown(path), remedy=_REMEDY)
                break
