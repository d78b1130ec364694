import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.models import random_llama
from tests.training.engine.tiny import make_rows
from training.engine.chat import ChatRow
from training.engine.config import TrainingConfig
from training.engine.run_identity import identify_run


def identify(**changes: Any) -> str:
    arguments: dict[str, Any] = {
        "base_model": random_llama(), "rows": make_rows(), "held_out": (), "config": TrainingConfig(),
        "libraries": {"torch": "1"}, **changes,
    }  # fmt: skip
    return identify_run(**arguments)


def with_training(**values: Any) -> TrainingConfig:
    config = TrainingConfig()
    return replace(config, training=replace(config.training, **values))


@pytest.mark.parametrize(
    "changes",
    [
        {"rows": make_rows()[::-1]},
        {"rows": (*make_rows()[:3], ChatRow("3", make_rows()[3].input_ids, 1))},
        {"held_out": make_rows()[:1]},
        {"config": with_training(learning_rate=1e-5)},
        {"config": with_training(packing=True)},
        {"config": with_training(eval_every_steps=7)},
        {"libraries": {"torch": "2"}},
    ],
)
def test_what_decides_the_training_makes_another_one(changes: dict[str, Any]) -> None:
    assert identify(**changes) != identify()


def test_another_base_makes_another_training(tmp_path: Path) -> None:
    base = shutil.copytree(random_llama(), tmp_path / "base")
    assert identify(base_model=base) == identify()
    (base / "config.json").write_text((base / "config.json").read_text() + " ")
    assert identify(base_model=base) != identify()


@pytest.mark.parametrize("name", ["log_every_steps", "save_every_steps", "max_minutes"])
def test_what_changes_no_result_does_not(name: str) -> None:
    assert identify(config=with_training(**{name: 3})) == identify()
