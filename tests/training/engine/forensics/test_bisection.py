"""The last sound checkpoint, with as few looks as a bisection needs."""

from pathlib import Path

import torch
from hypothesis import given
from hypothesis import strategies as st

from training.engine.checkpoints import Checkpoint, CheckpointFolder
from training.engine.forensics.bisection import find_last_sound
from training.engine.forensics.state_check import list_bad_tensors


def save(folder: CheckpointFolder, step: int, value: float = 1.0) -> None:
    weights = {"a": torch.tensor([1.0]), "b": torch.tensor([value])}
    folder.save(Checkpoint(step=step, trainables=weights, moments={"a": {"exp_avg": torch.tensor([value])}}))


class CountedFolder(CheckpointFolder):
    """Checkpoints whose number alone counts; looks are counted."""

    def __init__(self, count: int) -> None:
        super().__init__(Path(), identity="")
        self.num_loaded = 0
        self._count = count

    def list_steps(self) -> tuple[int, ...]:
        return tuple(range(1, self._count + 1))

    def load(self, step: int) -> Checkpoint:
        self.num_loaded += 1
        return Checkpoint(step=step, trainables={}, moments={})


@given(st.integers(0, 300), st.data())
def test_finds_the_border_with_few_looks(count: int, data: st.DataObject) -> None:
    last_sound = data.draw(st.integers(0, count))
    folder = CountedFolder(count)
    found = find_last_sound(folder, before_step=None, is_sound=lambda item: item.step <= last_sound)
    assert (found.checkpoint.step if found.checkpoint else 0) == last_sound
    assert (found.unsound.step if found.unsound else count + 1) == last_sound + 1
    assert folder.num_loaded <= count.bit_length()


def test_only_earlier_steps_count_and_unreadable_ones_are_passed_over(tmp_path: Path) -> None:
    folder = CheckpointFolder(tmp_path, identity="run", num_kept=9)
    for step, value in ((2, 1.0), (4, 1.0), (6, torch.nan), (8, torch.nan)):
        save(folder, step, value)
    (tmp_path / "step-00000004" / "state.safetensors").write_bytes(b"torn")
    found = find_last_sound(folder, before_step=8, is_sound=lambda item: not list_bad_tensors(item))
    assert found.checkpoint is not None
    assert found.unsound is not None
    assert (found.checkpoint.step, found.unsound.step) == (2, 6)
    assert list_bad_tensors(found.unsound) == ("b", "exp_avg of a")


def test_without_a_folder_the_start_is_all_there_is() -> None:
    found = find_last_sound(None, before_step=5, is_sound=lambda item: True)
    assert (found.checkpoint, found.unsound) == (None, None)
