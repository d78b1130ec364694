"""The scripts of the ticket demo task as modules: they lie in no package and import one another by name."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "tickets"


def load_module(name: str) -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(FOLDER)
        return importlib.import_module(name)
