import json
import shutil
from pathlib import Path

import pytest
import torch

from training.engine.checkpoints import Checkpoint, CheckpointFolder, batch_seed
from training.engine.errors import TrainingFailed


def make_checkpoint(step: int) -> Checkpoint:
    weight = torch.full((2, 3), float(step))
    return Checkpoint(
        step=step,
        trainables={"layer.0/lora_A": weight, "layer.0/lora_B": weight + 1},
        moments={"layer.0/lora_A": {"exp_avg": weight / 3, "step": torch.tensor(float(step))}},
        best={"layer.0/lora_A": weight - 1},
        progress={"recent": [[0.1, 3]]},
    )


def list_names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_what_is_saved_comes_back(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, identity="one")
    assert folder.load_latest() is None
    for step in (2, 4, 6):
        folder.save(make_checkpoint(step))
    assert folder.list_steps() == (4, 6)
    assert list_names(tmp_path) == ["step-00000004", "step-00000006"]
    for step in (4, 6):
        read, written = folder.load(step), make_checkpoint(step)
        assert (read.step, read.progress) == (step, {"recent": [[0.1, 3]]})
        assert read.trainables.keys() == written.trainables.keys()
        assert all(torch.equal(read.trainables[name], written.trainables[name]) for name in read.trainables)
        assert torch.equal(read.best["layer.0/lora_A"], written.best["layer.0/lora_A"])
        assert read.moments.keys() == written.moments.keys()
        moments = read.moments["layer.0/lora_A"]
        assert set(moments) == {"exp_avg", "step"}
        assert torch.equal(moments["exp_avg"], written.moments["layer.0/lora_A"]["exp_avg"])
        assert float(moments["step"]) == step
    latest = folder.load_latest()
    assert latest is not None
    assert latest.step == 6


def test_an_earlier_step_is_written_again(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, identity="one")
    folder.save(make_checkpoint(2))
    folder.save(make_checkpoint(2))
    assert folder.list_steps() == (2,)


def test_checkpoints_of_another_training_are_ignored_and_then_removed(tmp_path: Path) -> None:
    CheckpointFolder(tmp_path, identity="other").save(make_checkpoint(90))
    (tmp_path / "notes.txt").write_text("kept")
    folder = CheckpointFolder(tmp_path, identity="one")
    assert folder.list_steps() == ()
    assert folder.load_latest() is None
    folder.save(make_checkpoint(2))
    assert list_names(tmp_path) == ["notes.txt", "step-00000002"]


@pytest.mark.parametrize("damage", ["no-state", "cut-state", "other-version", "still-partial"])
def test_a_half_written_checkpoint_is_ignored(damage: str, tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, identity="one")
    folder.save(make_checkpoint(2))
    broken = folder.save(make_checkpoint(4))
    state = broken / "state.json"
    if damage == "no-state":
        state.unlink()
    elif damage == "cut-state":
        state.write_text(state.read_text()[:20])
    elif damage == "other-version":
        state.write_text(json.dumps({**json.loads(state.read_text()), "schema_version": 99}))
    else:
        shutil.move(broken, tmp_path / ".partial-step-00000004-x")
    latest = folder.load_latest()
    assert latest is not None
    assert latest.step == 2


def test_tensors_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, identity="one")
    tensors = folder.save(make_checkpoint(2)) / "state.safetensors"
    tensors.write_bytes(tensors.read_bytes()[:50])
    with pytest.raises(TrainingFailed, match="Remove the folder step-00000002") as caught:
        folder.load_latest()
    assert caught.value.code == "checkpoint-unreadable"


def test_seeds_of_batches_differ_and_are_the_same_in_every_process() -> None:
    seeds = {batch_seed(seed, step, index) for seed in range(3) for step in range(20) for index in range(5)}
    assert len(seeds) == 300
    assert all(0 <= seed < 2**63 for seed in seeds)
    # sha256 of "0/1/0" begins with 57c3ab1a1e0f5dde (sha256sum); halved.
    assert batch_seed(0, 1, 0) == 0x57C3AB1A1E0F5DDE >> 1
