"""Every test of the evaluation app has an artifact store of its own."""

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.registry import use_store


@pytest.fixture(autouse=True)
def store(settings: Any, tmp_path: Path) -> Path:
    use_store(settings, tmp_path)
    return tmp_path / "store"
