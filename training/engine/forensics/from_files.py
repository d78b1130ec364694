"""An investigation that begins with the files of a training, for those who called `run_training`."""

from collections.abc import Sequence
from pathlib import Path

from training.engine.config import TrainingConfig
from training.engine.device import Precision, choose_precision
from training.engine.errors import NotFinite, TrainingFailed
from training.engine.forensics.investigation import explain_not_finite
from training.engine.forensics.replay import ReplayLimits
from training.engine.forensics.training_inputs import TrainingInputs, make_decoder
from training.engine.loop_models import make_trained_model
from training.engine.lora_model import load_tokenizer, require_trainable
from training.engine.process_group import SingleProcess
from training.engine.progress import RunReporter, SilentReporter
from training.engine.random_state import own_random_state
from training.engine.step_record import StepRecord
from training.engine.trained_model import TrainedModel
from training.engine.trainer import load_for_training, open_checkpoints
from training.engine.training_rows import read_training_rows


def explain_training(
    error: NotFinite,
    *,
    base_model: Path,
    training_data: Path,
    holdout: Path | None,
    config: TrainingConfig,
    checkpoints: Path | None,
    report: RunReporter,
    history: Sequence[StepRecord] = (),
    limits: ReplayLimits | None = None,
) -> TrainingFailed:
    """Say why a training stopped, with the arguments that `run_training` was given; see `explain_not_finite`.

    Only one process of several calls it.

    Args:
        error: What `run_training` raised.
        base_model: As given there, like all of the following.
        training_data: Likewise.
        holdout: Likewise; it takes part in what checkpoints are known by.
        config: Likewise.
        checkpoints: Likewise.
        report: Likewise; receives the record "not_finite".
        history: Of a `StepHistory` among the observers.
        limits: How much is computed at most.
    """
    return explain_not_finite(
        error,
        lambda: read_inputs(
            base_model=base_model,
            training_data=training_data,
            holdout=holdout,
            config=config,
            checkpoints=checkpoints,
        ),
        report,
        history=history,
        limits=limits,
    )


def read_inputs(
    *,
    base_model: Path,
    training_data: Path,
    holdout: Path | None,
    config: TrainingConfig,
    checkpoints: Path | None,
) -> TrainingInputs:
    """Read what a training was made of, as the trainer does.

    Raises:
        TrainingEngineError: As `run_training`, before its first step.
    """
    precision = choose_precision(config.training.dtype)
    require_trainable(config.method, precision.device)
    tokenizer = load_tokenizer(base_model)
    rows = read_training_rows(
        tokenizer, training_data=training_data, holdout=holdout, config=config, report=SilentReporter()
    )

    def load(wanted: Precision) -> TrainedModel:
        with own_random_state(wanted.device, config.training.seed):
            return make_trained_model(
                load_for_training(base_model, rows, config, wanted),
                config,
                base_model=base_model,
                base_model_name=base_model.name,
                group=SingleProcess(),
            )

    return TrainingInputs(
        load_model=load,
        rows=rows.training,
        pad_token_id=rows.pad_token_id,
        settings=config.training,
        precision=precision,
        checkpoints=open_checkpoints(checkpoints, base_model, rows, config),
        decode=make_decoder(tokenizer),
    )
