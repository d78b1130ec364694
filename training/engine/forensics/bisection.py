"""The last sound checkpoint of a training."""

from collections.abc import Callable
from dataclasses import dataclass

from training.engine.checkpoints import Checkpoint, CheckpointFolder
from training.engine.errors import TrainingFailed


@dataclass(frozen=True, slots=True, kw_only=True)
class SoundState:
    """Where the steps can be repeated from.

    Attributes:
        checkpoint: The last sound one; None is the start.
        unsound: The first checkpoint after it that is not; None when there is none.
    """

    checkpoint: Checkpoint | None
    unsound: Checkpoint | None


def find_last_sound(
    folder: CheckpointFolder | None, *, before_step: int | None, is_sound: Callable[[Checkpoint], bool]
) -> SoundState:
    """Bisect the checkpoints: what has become infinite or NaN once does not become finite again.

    Checkpoints that cannot be read are passed over.

    Args:
        folder: Where they are; None when there are none.
        before_step: Only checkpoints of earlier steps are looked at; None looks at all.
        is_sound: Judges one; about log2 of their number are asked.
    """
    steps = (
        [step for step in folder.list_steps() if before_step is None or step < before_step] if folder else []
    )
    sound: Checkpoint | None = None
    unsound: Checkpoint | None = None
    while steps and folder is not None:
        middle = len(steps) // 2
        checkpoint = _read(folder, steps[middle])
        if checkpoint is None:
            del steps[middle]
        elif is_sound(checkpoint):
            sound, steps = checkpoint, steps[middle + 1 :]
        else:
            unsound, steps = checkpoint, steps[:middle]
    return SoundState(checkpoint=sound, unsound=unsound)


def _read(folder: CheckpointFolder, step: int) -> Checkpoint | None:
    try:
        return folder.load(step)
    except TrainingFailed:
        return None
