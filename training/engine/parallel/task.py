"""What several processes are told to do, as a JSON file."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from training.engine.config import TrainingConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTask:
    """The arguments of `training.engine.trainer.run_training`, without those that live in a process.

    Attributes:
        base_model: Hugging Face folder.
        training_data: JSONL file or folder.
        holdout: Likewise; None leaves the held-out loss out.
        config: Of the run.
        output: Folder to create.
        base_model_name: Written into the adapter; None takes the folder's name.
        checkpoints: Folder for checkpoints; None keeps none.
        known_overfits: Overfit tests that need not be repeated; None leaves the preflight out.
    """

    base_model: Path
    training_data: Path
    holdout: Path | None
    config: TrainingConfig
    output: Path
    base_model_name: str | None = None
    checkpoints: Path | None = None
    known_overfits: tuple[str, ...] | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the values by name, as `run_training` takes them."""
        return {name: getattr(self, name) for name in self.__slots__}

    def write(self, file: Path) -> None:
        """Write the task as JSON; paths become absolute."""
        values: dict[str, Any] = {
            name: str(value.absolute()) if isinstance(value, Path) else value
            for name, value in self.arguments().items()
        }
        file.write_text(json.dumps({**values, "config": self.config.to_json()}), encoding="utf-8")

    @classmethod
    def read(cls, file: Path) -> "TrainingTask":
        """Read what `write` wrote."""
        raw: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return cls(
            base_model=Path(raw["base_model"]),
            training_data=Path(raw["training_data"]),
            holdout=_optional_path(raw["holdout"]),
            config=TrainingConfig.from_json(raw["config"]),
            output=Path(raw["output"]),
            base_model_name=raw["base_model_name"],
            checkpoints=_optional_path(raw["checkpoints"]),
            known_overfits=None if raw["known_overfits"] is None else tuple(raw["known_overfits"]),
        )


def _optional_path(value: str | None) -> Path | None:
    return None if value is None else Path(value)
