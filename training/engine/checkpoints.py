"""Checkpoints of a training: everything from which it goes on to the same result.

Random numbers need no place in them: dropout is seeded anew for every batch (`batch_seed`), and the order of
rows follows from the seed. The files are safetensors and JSON, never pickle.
"""

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from registry.artifacts.json_files import JsonFileError, load_json_object
from training.engine.atomic_folder import atomic_folder
from training.engine.errors import TrainingFailed

SCHEMA_VERSION: Final = 1
_TENSORS: Final = "state.safetensors"
_STATE: Final = "state.json"
_PREFIX: Final = "step-"


def batch_seed(seed: int, step: int, index: int) -> int:
    """Return the seed of torch's generators for one forward and backward pass.

    Whoever computes the batch, in which process and after which interruption, draws the same dropout.

    Args:
        seed: Of the training.
        step: Optimiser step, from 1.
        index: Of the batch within the step, from 0.
    """
    digest = hashlib.sha256(f"{seed}/{step}/{index}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The state of a training after a step.

    Attributes:
        step: Optimiser steps done.
        trainables: Trainable parameters by name.
        moments: Name of a parameter to the optimiser's tensors of it (``exp_avg``, ``exp_avg_sq``, ``step``).
        best: The trainables at the lowest held-out loss; empty where they are not kept.
        progress: JSON of everything else that goes on: sums, recent losses, early stopping.
    """

    step: int
    trainables: Mapping[str, torch.Tensor]
    moments: Mapping[str, Mapping[str, torch.Tensor]]
    best: Mapping[str, torch.Tensor] = field(default_factory=dict)
    progress: Mapping[str, Any] = field(default_factory=dict)


class CheckpointFolder:
    """The checkpoints of one training.

    Args:
        path: Folder with one folder per checkpoint; made when needed.
        identity: Digest of everything that decides the training. Checkpoints of another one are not its own
            and are removed when the first own one is written.
        num_kept: Newest checkpoints that stay, at least 1.
    """

    def __init__(self, path: Path, *, identity: str, num_kept: int = 2) -> None:
        self._path = path
        self._identity = identity
        self._num_kept = num_kept

    def save(self, checkpoint: Checkpoint) -> Path:
        """Write a checkpoint, complete or not at all, then remove those that are too many; return its folder.

        Raises:
            OSError: The disk is full or broken; earlier checkpoints are untouched.
        """
        folder = self._path / f"{_PREFIX}{checkpoint.step:08d}"
        shutil.rmtree(folder, ignore_errors=True)
        state = {
            "schema_version": SCHEMA_VERSION,
            "identity": self._identity,
            "step": checkpoint.step,
            "progress": dict(checkpoint.progress),
        }
        with atomic_folder(folder) as partial:
            save_file(_pack(checkpoint), partial / _TENSORS)
            (partial / _STATE).write_text(json.dumps(state, sort_keys=True), encoding="utf-8")
        self._prune()
        return folder

    def list_steps(self) -> tuple[int, ...]:
        """Return the steps of this training's complete checkpoints, ascending."""
        steps = [step for step, folder in self._folders() if self._is_own(folder)]
        return tuple(sorted(steps))

    def load(self, step: int) -> Checkpoint:
        """Read a checkpoint, tensors on the CPU.

        Raises:
            TrainingFailed: ``checkpoint-unreadable``.
        """
        folder = self._path / f"{_PREFIX}{step:08d}"
        try:
            state = load_json_object(folder / _STATE)
            packed = load_file(folder / _TENSORS)
        except (OSError, JsonFileError, SafetensorError) as error:
            raise TrainingFailed(
                "checkpoint-unreadable",
                f"The checkpoint of step {step} cannot be read ({error}). Remove the folder {folder.name}: "
                "the training then goes on from an earlier one, or begins anew.",
            ) from error
        return _unpack(step, packed, state["progress"])

    def load_latest(self) -> Checkpoint | None:
        """Read the newest checkpoint of this training; None when there is none.

        Raises:
            TrainingFailed: ``checkpoint-unreadable``.
        """
        steps = self.list_steps()
        return self.load(steps[-1]) if steps else None

    def _folders(self) -> list[tuple[int, Path]]:
        if not self._path.is_dir():
            return []
        found = [(folder.name.removeprefix(_PREFIX), folder) for folder in self._path.glob(f"{_PREFIX}*")]
        return [(int(number), folder) for number, folder in found if number.isdigit() and folder.is_dir()]

    def _is_own(self, folder: Path) -> bool:
        try:
            state = load_json_object(folder / _STATE)
        except (OSError, JsonFileError):
            return False
        return state.get("schema_version") == SCHEMA_VERSION and state.get("identity") == self._identity

    def _prune(self) -> None:
        own = self.list_steps()[-self._num_kept :]
        for step, folder in self._folders():
            if step not in own:
                shutil.rmtree(folder, ignore_errors=True)


def _pack(checkpoint: Checkpoint) -> dict[str, torch.Tensor]:
    packed = {f"trainable/{name}": tensor for name, tensor in checkpoint.trainables.items()}
    packed |= {f"best/{name}": tensor for name, tensor in checkpoint.best.items()}
    for name, tensors in checkpoint.moments.items():
        packed |= {f"moment/{kind}/{name}": tensor for kind, tensor in tensors.items()}
    return {name: tensor.detach().cpu().contiguous() for name, tensor in packed.items()}


def _unpack(step: int, packed: Mapping[str, torch.Tensor], progress: Mapping[str, Any]) -> Checkpoint:
    trainables: dict[str, torch.Tensor] = {}
    best: dict[str, torch.Tensor] = {}
    moments: dict[str, dict[str, torch.Tensor]] = {}
    for key, tensor in packed.items():
        group, _, name = key.partition("/")
        if group == "moment":
            kind, _, name = name.partition("/")
            moments.setdefault(name, {})[kind] = tensor
        else:
            (best if group == "best" else trainables)[name] = tensor
    return Checkpoint(step=step, trainables=trainables, moments=moments, best=best, progress=progress)
