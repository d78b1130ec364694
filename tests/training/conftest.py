"""Tests of the training app's Django side have an artifact store of their own."""

from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.registry import use_store


@pytest.fixture
def store(settings: Any, tmp_path: Path) -> Path:
    use_store(settings, tmp_path)
    return tmp_path / "store"
