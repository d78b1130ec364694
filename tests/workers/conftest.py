"""A store and a work root of its own for every test."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _own_folders(settings: Any, tmp_path: Path) -> None:
    settings.ARTIFACT_STORE = f"file://{tmp_path / 'artifacts'}"
    settings.WORK_ROOT = tmp_path / "work"
    settings.JOB_HEARTBEAT_SECONDS = 0.1
    settings.JOB_NUM_THREADS = 1
