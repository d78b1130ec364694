"""`assay promote`, `rollback`, `pull` and `channel ...`."""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from client.api import AssayApi
from client.cli.display import make_display
from client.cli.options import JsonOption, split_reference
from client.cli.session import Session, session_of
from client.cli.submissions import find_submission
from client.downloads import Downloader
from client.errors import AssayApiError
from client.progress import format_bytes
from client.reports.text import make_table, safe
from client.run_models import Channel

channel_app = typer.Typer(no_args_is_help=True, help="Create and look at channels.")

ReasonOption = Annotated[str, typer.Option(help="Why; kept in the channel's history.")]
ChannelArgument = Annotated[str, typer.Argument(metavar="CHANNEL", help="Name of the channel.")]
EtagOption = Annotated[
    str | None,
    typer.Option(
        "--if-match", help="Only if the channel still has this etag; without it, the state that is found now."
    ),
]


class ShippingForm(StrEnum):
    """What a channel serves: a whole model, or an adapter that goes with its base."""

    MERGED = "merged"
    ADAPTER = "adapter"


def promote(
    context: typer.Context,
    version: Annotated[
        str,
        typer.Argument(
            metavar="VERSION", help="Adapter version like tickets@3, or the id of its submission."
        ),
    ],
    channel: ChannelArgument,
    reason: ReasonOption,
    override: Annotated[
        bool,
        typer.Option(
            "--override", help="Promote without a passed verdict; needs the right, and shows everywhere."
        ),
    ] = False,
    if_match: EtagOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a channel serve an adapter version that passed."""
    session = session_of(context)
    with session.open_api() as api:
        adapter, number = _find_version(api, version)
        before = api.get_channel(channel)
        try:
            after = api.promote(
                channel=channel,
                etag=if_match or before.etag,
                adapter=adapter,
                version=number,
                reason=reason,
                is_override=override,
            )
        except AssayApiError as error:
            raise _explained(error) from error
    _tell_change(session, before, after, as_json=as_json)


def rollback(
    context: typer.Context,
    channel: ChannelArgument,
    reason: ReasonOption,
    to: Annotated[
        int | None,
        typer.Option(
            min=1, help="Promotion to go back to (see `assay channel history`); else the one before."
        ),
    ] = None,
    if_match: EtagOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let a channel serve again what it served before."""
    session = session_of(context)
    with session.open_api() as api:
        before = api.get_channel(channel)
        try:
            after = api.roll_back(
                channel=channel, etag=if_match or before.etag, reason=reason, to_promotion=to
            )
        except AssayApiError as error:
            raise _explained(error) from error
    _tell_change(session, before, after, as_json=as_json)


def _find_version(api: AssayApi, version: str) -> tuple[str, int]:
    if "@" in version:
        return split_reference(version, "an adapter version")
    submission = find_submission(api, version)
    return submission.adapter, submission.version


def _explained(error: AssayApiError) -> AssayApiError:
    """Add what to do next to the refusals that a user of a channel meets."""
    advice = {
        "channel-changed": "Somebody changed the channel: look at it (assay channel show) and try again.",
        "version-not-passed": "Only a version with a passed verdict can be promoted: see `assay report`.",
    }.get(error.code)
    if advice is None:
        return error
    return AssayApiError(
        status=error.status,
        code=error.code,
        title=error.title,
        detail=f"{error.message} {advice}",
        errors=error.errors,
        extra=error.extra,
    )


def _tell_change(session: Session, before: Channel, after: Channel, *, as_json: bool) -> None:
    if as_json:
        session.output.document(json.dumps(after.document, indent=2) + "\n")
        return
    session.output.result(safe(f"{after.name}: {_current(before)} -> {_current(after)} ({after.form})"))


def _current(channel: Channel) -> str:
    return channel.current.reference if channel.current else "nothing"


def pull(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(metavar="CHANNEL", help="Channel, or with --artifact the digest of an artifact.")
    ],
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", file_okay=False, help="Folder to make; it appears when all files are there."
        ),
    ],
    artifact: Annotated[
        bool,
        typer.Option(
            "--artifact", help="CHANNEL is an artifact's digest, like the base model's of an adapter."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was pulled as JSON.")] = False,
) -> None:
    """Pull what a channel serves. A folder with other files in it is never touched."""
    session = session_of(context)
    with session.open_api() as api, make_display(session.output) as display:
        downloader = Downloader(api, progress=display)
        if artifact:
            files = api.get_artifact(source).manifest
            what = f"artifact {files.digest[:12]}"
            document: dict[str, object] = {"artifact": files.digest}
            result = downloader.pull(files, folder)
        else:
            manifest = api.get_manifest(source)
            files = manifest.files
            what = f"{manifest.adapter}@{manifest.version} ({manifest.form}) from {manifest.channel}"
            document = dict(manifest.document)
            result = downloader.pull(files, folder, record=document)
            if manifest.form == "adapter":
                display.note(
                    f"This is an adapter for {manifest.base_model}; its base model comes with: "
                    f"assay pull --artifact {manifest.base_model_artifact} DIR"
                )
    if as_json:
        answer = {"folder": str(result.target), "is_unchanged": result.is_unchanged, "manifest": document}
        session.output.document(json.dumps(answer, indent=2) + "\n")
        return
    verb = "already in" if result.is_unchanged else "pulled into"
    size = f"{files.num_files} files, {format_bytes(files.size_bytes)}"
    session.output.result(safe(f"{what} {verb} {result.target} ({size})"))


@channel_app.command("create")
def create_command(
    context: typer.Context,
    name: ChannelArgument,
    form: Annotated[ShippingForm, typer.Option(help="What it serves.")] = ShippingForm.MERGED,
    policy: Annotated[
        str | None, typer.Option(help="Policy a version must have passed; else the default.")
    ] = None,
) -> None:
    """Create a channel; one that exists already in this form is left as it is."""
    session = session_of(context)
    with session.open_api() as api:
        channel = api.create_channel(name=name, form=form.value, policy=policy)
    session.output.result(safe(f"channel {channel.name} serves {channel.form}: {_current(channel)}"))


@channel_app.command("list")
def list_command(context: typer.Context, as_json: JsonOption = False) -> None:
    """List the channels and what they serve."""
    session = session_of(context)
    with session.open_api() as api:
        channels = api.list_channels()
    if as_json:
        session.output.document(json.dumps([channel.document for channel in channels], indent=2) + "\n")
        return
    table = make_table(("channel", "form", "serves", "since", "by"))
    for channel in channels:
        current = channel.current
        table.add_row(
            safe(channel.name),
            safe(channel.form),
            safe(_current(channel)),
            safe((current.promoted_at if current else None) or "-"),
            safe((current.promoted_by if current else None) or "-"),
        )
    session.output.result(table if channels else "no channels")


@channel_app.command("show")
def show_command(context: typer.Context, name: ChannelArgument, as_json: JsonOption = False) -> None:
    """Show a channel and its etag."""
    session = session_of(context)
    with session.open_api() as api:
        channel = api.get_channel(name)
    if as_json:
        session.output.document(json.dumps(channel.document, indent=2) + "\n")
        return
    session.output.result(
        safe(f"{channel.name} serves {_current(channel)} ({channel.form}), etag {channel.etag}")
    )
    if channel.current is not None:
        current = channel.current
        session.output.result(
            safe(f"promotion {current.promotion_id}, {current.promoted_at}, by {current.promoted_by}")
        )


@channel_app.command("history")
def history_command(
    context: typer.Context,
    name: ChannelArgument,
    limit: Annotated[int, typer.Option(min=1, help="At most so many, the newest.")] = 20,
    as_json: JsonOption = False,
) -> None:
    """Show what a channel served, when, by whom and why."""
    session = session_of(context)
    with session.open_api() as api:
        rows = api.list_channel_history(name, limit=limit)
    if as_json:
        session.output.document(json.dumps([dict(row) for row in rows], indent=2) + "\n")
        return
    headings = ("id", "kind", "version", "at", "by", "reason")
    table = make_table(headings)
    for row in rows:
        table.add_row(*(safe(cell) for cell in _history_cells(row)))
    session.output.result(table if rows else "nothing was ever promoted here")


def _history_cells(row: object) -> tuple[str, ...]:
    """Return the cells of one change; members that the server leaves out are shown as a dash."""
    members = dict(row) if isinstance(row, dict) else {}
    kind = str(members.get("kind") or members.get("action") or "-")
    if members.get("is_override") or members.get("override"):
        kind += " (override)"
    adapter, version = members.get("adapter"), members.get("version")
    return (
        str(members.get("promotion_id") or members.get("id") or "-"),
        kind,
        f"{adapter}@{version}" if adapter and version else "-",
        str(members.get("promoted_at") or members.get("at") or "-"),
        str(members.get("promoted_by") or members.get("by") or "-"),
        str(members.get("reason") or "-"),
    )
