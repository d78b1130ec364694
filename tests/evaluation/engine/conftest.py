"""The engine is pure: its tests need no Django, and so no artifact store."""

import pytest


@pytest.fixture(autouse=True)
def store() -> None:
    """Stand in for the evaluation app's fixture of this name."""
