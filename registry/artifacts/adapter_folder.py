"""Finds the adapter in a folder as training tools leave it; says what is sent, what is left out, and why.

Used by the client before an upload and by the server for what arrives. Reads names, the configuration and the
first bytes of the weights; opens no pickle and runs nothing. Standard library only, since the client installs
nothing else.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from registry.artifacts.adapter_config import CONFIG_FILE, read_adapter_config
from registry.artifacts.adapter_rules import check_config
from registry.artifacts.errors import AdapterConfigError, FolderError
from registry.artifacts.findings import Finding, has_errors, shown, shown_list
from registry.artifacts.leftovers import (
    CHECKPOINT_FOLDER,
    CHECKPOINT_REASON,
    FULL_MODEL_REASON,
    file_reason,
    folder_reason,
    is_adapter_file,
    is_tool_folder,
)
from registry.artifacts.paths import check_path

WEIGHTS_FILE = "adapter_model.safetensors"
PICKLE_WEIGHTS_FILE = "adapter_model.bin"
MAX_FOLDER_ENTRIES = 100_000
_LFS_PREFIX = b"version https://git-lfs.github.com/spec/"
CONVERT_RECIPE = (
    "Convert it where you trust its origin, with torch and safetensors installed: "
    'python -c "import torch, safetensors.torch as s; '
    "w = torch.load('adapter_model.bin', map_location='cpu', weights_only=True); "
    "s.save_file({k: v.contiguous() for k, v in w.items()}, 'adapter_model.safetensors')\""
)


@dataclass(frozen=True, slots=True)
class SelectedFile:
    """A file to send: its path inside the artifact, where it is, its length in bytes."""

    path: str
    source: Path
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterSelection:
    """What of a folder is the adapter.

    Attributes:
        adapter_root: the folder with adapter_config.json; None when none could be chosen.
        candidates: every folder with an adapter, relative to the given one, "." for itself; checkpoints only
            when there is nothing else.
        files: to be sent, sorted by path.
        left_out: (path relative to adapter_root, reason), folders as one entry ending in "/".
        findings: errors (nothing may be sent), warnings and notices.
    """

    adapter_root: Path | None
    candidates: tuple[str, ...] = ()
    files: tuple[SelectedFile, ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether the files may be sent."""
        return not has_errors(self.findings)

    @property
    def size_bytes(self) -> int:
        """Sum of the selected files' sizes."""
        return sum(file.size_bytes for file in self.files)


def select_adapter_files(root: Path, *, path: str | None = None) -> AdapterSelection:
    """Choose the files of one adapter below `root`.

    Args:
        root: what the user gave: an adapter's folder, a trainer's output folder, a repository.
        path: which adapter is meant when there are several, relative to `root` ("." is root itself); None
            when the folder must hold only one.

    Raises:
        FolderError: `root` is no readable folder or has more than `MAX_FOLDER_ENTRIES` entries.
    """
    if not root.is_dir():
        raise FolderError(f"{shown(root)} is not a folder.", code="folder-missing")
    if path is not None:
        return _select_named(root, path)
    candidates = _rivals(_find_adapters(root))
    if not candidates:
        return AdapterSelection(adapter_root=None, findings=(_explain_no_adapter(root),))
    if len(candidates) > 1:
        message = f"There are {len(candidates)} adapters in this folder: {shown_list(candidates, limit=20)}."
        remedy = "Say which one with --path, for example --path " + shown(candidates[0])
        finding = Finding.error("adapter-ambiguous", message, remedy=remedy)
        return AdapterSelection(adapter_root=None, candidates=tuple(candidates), findings=(finding,))
    notices = []
    if candidates[0] != ".":
        message = f"The adapter is in the subfolder {shown(candidates[0])}; only that folder is sent."
        notices.append(Finding.info("adapter-in-subfolder", message, where=shown(candidates[0])))
    return _select_from(root / candidates[0], candidates=tuple(candidates), notices=notices)


def _select_named(root: Path, path: str) -> AdapterSelection:
    parts = PurePosixPath(path)
    folder = root / parts
    if parts.is_absolute() or not folder.resolve().is_relative_to(root.resolve()):
        message = "The path leaves the folder."
        return AdapterSelection(
            adapter_root=None, findings=(Finding.error("adapter-path-outside", message, where=shown(path)),)
        )
    if not (folder / CONFIG_FILE).is_file():
        message = f"There is no {CONFIG_FILE} in {shown(path)}."
        found = _rivals(_find_adapters(root))
        remedy = f"Adapters are in: {shown_list(found, limit=20)}." if found else None
        finding = Finding.error("adapter-path-missing", message, where=shown(path), remedy=remedy)
        return AdapterSelection(adapter_root=None, candidates=tuple(found), findings=(finding,))
    return _select_from(folder, candidates=(parts.as_posix(),), notices=[])


def _find_adapters(root: Path) -> list[str]:
    """Return the folders with an adapter_config.json, relative, "." for root; links are not followed."""
    found = []
    num_entries = 0
    for parent, folders, names in os.walk(root, followlinks=False):
        num_entries += len(folders) + len(names)
        if num_entries > MAX_FOLDER_ENTRIES:
            raise FolderError(
                f"{shown(root)} has more than {MAX_FOLDER_ENTRIES} entries; name the adapter's own folder.",
                code="folder-too-large",
            )
        folders[:] = sorted(name for name in folders if not is_tool_folder(name))
        if CONFIG_FILE in names:
            found.append(Path(parent).relative_to(root).as_posix())
    return sorted(found)


def _rivals(found: list[str]) -> list[str]:
    """Drop intermediate checkpoints when there is an adapter that is none."""
    final = [path for path in found if not any(map(CHECKPOINT_FOLDER.fullmatch, PurePosixPath(path).parts))]
    return final or found


def _explain_no_adapter(root: Path) -> Finding:
    names = sorted(entry.name for entry in root.iterdir())
    if any(file_reason(name) == FULL_MODEL_REASON for name in names):
        message = f"This is a full model, not an adapter: there is no {CONFIG_FILE}."
        remedy = "Submit the adapter's folder, or register the model as a base model."
        return Finding.error("full-model-not-adapter", message, remedy=remedy)
    message = f"There is no {CONFIG_FILE} here or in a subfolder."
    remedy = "Give the folder that model.save_pretrained(folder) of peft wrote."
    return Finding.error("adapter-config-missing", message, remedy=remedy)


def _select_from(folder: Path, *, candidates: tuple[str, ...], notices: list[Finding]) -> AdapterSelection:
    findings = [*notices, *_check_configuration(folder)]
    if not _is_foreign(findings):
        findings.extend(check_weights_file(folder))
    files: list[SelectedFile] = []
    left_out: list[tuple[str, str]] = []
    for path, entry in _list_entries(folder):
        if entry.is_dir() and not entry.is_symlink():
            left_out.append((f"{path}/", folder_reason(entry.name)))
        elif is_adapter_file(path):
            findings.extend(_add_file(folder, path, entry, files))
        else:
            left_out.append((path, file_reason(entry.name)))
    findings.extend(_notices(left_out))
    return AdapterSelection(
        adapter_root=folder,
        candidates=candidates,
        files=tuple(sorted(files, key=lambda file: file.path)),
        left_out=tuple(sorted(left_out)),
        findings=tuple(findings),
    )


def _list_entries(folder: Path) -> Iterator[tuple[str, Path]]:
    for entry in sorted(folder.iterdir()):
        if entry.name == "additional_chat_templates" and entry.is_dir() and not entry.is_symlink():
            for template in sorted(entry.iterdir()):
                yield f"{entry.name}/{template.name}", template
        else:
            yield entry.name, entry


def _check_configuration(folder: Path) -> list[Finding]:
    try:
        config = read_adapter_config(folder / CONFIG_FILE)
    except AdapterConfigError as error:
        return [
            Finding.error(
                error.code, str(error), where=CONFIG_FILE, remedy="Save the adapter again with peft."
            )
        ]
    return check_config(config)


def _is_foreign(findings: list[Finding]) -> bool:
    """Return whether this is no LoRA of peft, whose weights have other names."""
    foreign = {"adapter-mlx", "adapter-adapterhub", "adapter-not-lora", "adapter-not-peft"}
    return any(finding.code in foreign for finding in findings)


def check_weights_file(folder: Path) -> list[Finding]:
    """Return what is wrong with the weights in an adapter's folder, by name and first bytes only."""
    weights = folder / WEIGHTS_FILE
    if weights.is_file():
        with weights.open("rb") as file:
            if file.read(len(_LFS_PREFIX)) == _LFS_PREFIX:
                message = f"{WEIGHTS_FILE} is a git-lfs pointer, not the weights."
                return [
                    Finding.error(
                        "weights-lfs-pointer", message, where=WEIGHTS_FILE, remedy="Run: git lfs pull"
                    )
                ]
        return []
    if (folder / PICKLE_WEIGHTS_FILE).is_file():
        message = (
            f"The only weights are {PICKLE_WEIGHTS_FILE}, a pickle, which can run code when loaded; not sent."
        )
        return [
            Finding.error("weights-pickle-only", message, where=PICKLE_WEIGHTS_FILE, remedy=CONVERT_RECIPE)
        ]
    if any(folder.glob("adapter_model-*-of-*.safetensors")):
        message = (
            f"The weights are split into several files; one {WEIGHTS_FILE} is expected, as peft writes it."
        )
        return [
            Finding.error("weights-sharded", message, remedy="Load the adapter with peft and save it again.")
        ]
    message = f"There is no {WEIGHTS_FILE} beside {CONFIG_FILE}."
    remedy = "Save the adapter with peft (model.save_pretrained), or fetch the file that belongs here."
    return [Finding.error("weights-missing", message, where=WEIGHTS_FILE, remedy=remedy)]


def _add_file(folder: Path, path: str, entry: Path, files: list[SelectedFile]) -> Iterator[Finding]:
    where = shown(path)
    if not entry.resolve().is_relative_to(folder.resolve()):
        message = "The file is a link that leaves the adapter's folder; it is not followed."
        remedy = "Copy the folder with its contents: cp -rL FOLDER COPY"
        yield Finding.error("symlink-outside", message, where=where, remedy=remedy)
        return
    if not entry.is_file():
        yield Finding.error(
            "file-not-regular", "This is not a regular file.", where=where, remedy="Remove it."
        )
        return
    yield from check_path(path)
    files.append(SelectedFile(path=path, source=entry, size_bytes=entry.stat().st_size))


def _notices(left_out: list[tuple[str, str]]) -> Iterator[Finding]:
    if not left_out:
        return
    message = f"{len(left_out)} entries are left out: {shown_list(path for path, _ in left_out)}."
    yield Finding.info("files-left-out", message)
    if any(path == PICKLE_WEIGHTS_FILE for path, _ in left_out):
        message = (
            f"Both {WEIGHTS_FILE} and {PICKLE_WEIGHTS_FILE} may be here; only the safetensors file counts."
        )
        yield Finding.info("weights-pickle-ignored", message, where=PICKLE_WEIGHTS_FILE)
    full = [path for path, reason in left_out if reason == FULL_MODEL_REASON]
    if full:
        message = f"Weights of a full model lie beside the adapter and are left out: {shown_list(full)}."
        yield Finding.warning(
            "full-model-left-out", message, remedy="Check that the adapter is what you want to submit."
        )
    if any(reason == CHECKPOINT_REASON for _, reason in left_out):
        message = "Intermediate checkpoints are left out; the adapter in the folder itself is sent."
        yield Finding.info(
            "checkpoints-left-out", message, remedy="Use --path checkpoint-N to submit one of them."
        )
