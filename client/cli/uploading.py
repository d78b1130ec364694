"""Uploading files with progress on the display."""

from pathlib import Path

from client.api import AssayApi
from client.cli.display import make_display
from client.cli.session import Session
from client.uploads import Uploader, hash_files

DATASET_FILE = "data.jsonl"


def upload_files(session: Session, api: AssayApi, kind: str, sources: dict[str, Path]) -> str:
    """Upload files as an artifact of a kind and return its digest; what the server has is not sent again."""
    with make_display(session.output) as display:
        uploader = Uploader(api, journal=session.upload_journal(), progress=display)
        return uploader.upload(kind, hash_files(sources, display))
