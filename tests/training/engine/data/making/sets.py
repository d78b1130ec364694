"""Template sets for tests: two hand-written files, and a small one to be changed."""

import copy
from pathlib import Path
from typing import Any

from training.engine.data.making.template_reading import read_template_file
from training.engine.data.making.template_set import TemplateSet

FOLDER = Path(__file__).parent


def load(name: str) -> TemplateSet:
    return read_template_file(FOLDER / f"{name}.json")


SMALL: dict[str, Any] = {
    "name": "small",
    "answer": ["colour", "size"],
    "slots": {
        "thing": {"values": [
            {"text": "a red ball", "labels": {"colour": "red"}, "keep": ["red"]},
            {"text": "a crimson hat", "labels": {"colour": "red"}, "keep": ["crimson"]},
            {"text": "a blue kite", "labels": {"colour": "blue"}, "keep": ["blue"]},
        ]},
        "size": {"values": [
            {"text": "It is huge.", "labels": {"size": 2}, "keep": ["huge"]},
            {"text": "", "labels": {"size": 1}},
        ]},
        "start": {"values": ["Yesterday we bought", "Tomorrow somebody brings", "On Monday the shop sent"]},
    },
    "templates": [{"id": "one", "text": "{start} {thing}. {size}"}],
}  # fmt: skip


def small(**changes: Any) -> dict[str, Any]:
    return {**copy.deepcopy(SMALL), **changes}
