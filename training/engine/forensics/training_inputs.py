"""What a training was made of: enough to do any of its steps again."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from training.engine.chat import ChatRow, ChatTokenizer
from training.engine.checkpoints import CheckpointFolder
from training.engine.config import OptimisationSettings
from training.engine.device import Precision
from training.engine.trained_model import TrainedModel


def _decode_nothing(row: ChatRow) -> str:
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingInputs:
    """A training before its first step.

    Attributes:
        load_model: Returns the model as it was before the first step, with the same random weights of an
            adapter, its frozen weights in the given format. Called at most twice; the first model is let go
            of before.
        rows: All rows trained on, in order.
        pad_token_id: As in the training.
        settings: Of the training.
        precision: Device and number format of the training.
        checkpoints: Those of the training; None when it kept none.
        decode: Returns the text of a row.
    """

    load_model: Callable[[Precision], TrainedModel]
    rows: Sequence[ChatRow]
    pad_token_id: int
    settings: OptimisationSettings
    precision: Precision
    checkpoints: CheckpointFolder | None = None
    decode: Callable[[ChatRow], str] = field(default=_decode_nothing)


def make_decoder(tokenizer: ChatTokenizer) -> Callable[[ChatRow], str]:
    """Return what gives the text of a row, template and special tokens included."""

    def decode(row: ChatRow) -> str:
        return str(tokenizer.decode(list(row.input_ids), skip_special_tokens=False))

    return decode
