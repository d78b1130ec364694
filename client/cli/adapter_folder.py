"""Tells the user what of a folder is submitted, what stays behind, and what is wrong with it, before
anything is sent.
"""

from dataclasses import dataclass
from pathlib import Path

from client.cli.console import Output
from client.errors import UsageError
from client.findings import detail_of
from registry.artifacts.adapter_config import CONFIG_FILE, read_adapter_config
from registry.artifacts.adapter_folder import AdapterSelection, select_adapter_files
from registry.artifacts.errors import AdapterConfigError, FolderError

_MAX_LEFT_OUT_LINES = 20
# Said line by line with the reasons instead.
_SUMMARY_CODE = "files-left-out"


@dataclass(frozen=True, slots=True, kw_only=True)
class PickedAdapter:
    """The files to upload by their path in the artifact. ``base_hint``: what the adapter says of its base,
    or None.
    """

    sources: dict[str, Path]
    base_hint: str | None


def pick_adapter(output: Output, folder: Path, path: str | None) -> PickedAdapter:
    """Choose the adapter's files in a folder and write the notices.

    Args:
        output: Where the notices go.
        folder: What the user gave.
        path: Which adapter is meant when there are several, relative to ``folder``; None asks nothing.

    Raises:
        UsageError: Nothing there can be submitted; all faults are in its details.
    """
    try:
        selection = select_adapter_files(folder, path=path)
    except FolderError as error:
        raise UsageError(error.code, str(error)) from error
    if not selection.ok or selection.adapter_root is None:
        raise UsageError(
            "adapter-not-submittable",
            f"{folder} cannot be submitted; nothing was sent.",
            details=tuple(map(detail_of, selection.findings)),
        )
    _tell_left_out(output, selection)
    output.findings([detail_of(finding) for finding in selection.findings if finding.code != _SUMMARY_CODE])
    return PickedAdapter(
        sources={file.path: file.source for file in selection.files},
        base_hint=_read_base_hint(selection.adapter_root),
    )


def _tell_left_out(output: Output, selection: AdapterSelection) -> None:
    for path, reason in selection.left_out[:_MAX_LEFT_OUT_LINES]:
        output.notice(f"left out: {path} ({reason})", "dim")
    num_more = len(selection.left_out) - _MAX_LEFT_OUT_LINES
    if num_more > 0:
        output.notice(f"left out: {num_more} more", "dim")


def _read_base_hint(folder: Path) -> str | None:
    try:
        return read_adapter_config(folder / CONFIG_FILE).base_hint
    except AdapterConfigError:
        return None
