"""A whole preflight by itself, for the purpose "preflight" and the program; the trainer calls the stages."""

from collections.abc import Collection
from pathlib import Path

from training.engine.config import TrainingConfig
from training.engine.device import choose_precision
from training.engine.lora_model import load_tokenizer, require_trainable
from training.engine.preflight.report import PreflightReport
from training.engine.preflight.stages import Preflight
from training.engine.progress import RunReporter
from training.engine.trainer import load_for_training


def run_preflight(
    *,
    base_model: Path,
    training_data: Path,
    holdout: Path | None,
    config: TrainingConfig,
    report: RunReporter,
    base_identity: str | None = None,
    known_overfits: Collection[str] = (),
    is_data_only: bool = False,
) -> PreflightReport:
    """Carry out a whole preflight by itself, the base loaded for it.

    Args:
        base_model: Hugging Face folder.
        training_data: JSONL file or folder.
        holdout: Likewise; None without.
        config: Of the training.
        report: Receives the record "preflight", and progress.
        base_identity: See `Preflight`.
        known_overfits: See `Preflight`.
        is_data_only: Whether to stop after the checks of the data; the base's weights are not read then.

    Raises:
        TrainingFailed: ``preflight-failed``, after the report was recorded.
        DataInvalid: Files that cannot be read.
        ConfigInvalid: The method cannot be carried out here.
        BaseModelUnavailable: Base or tokenizer cannot be loaded.
    """
    preflight = Preflight(
        base_model=base_model,
        config=config,
        report=report,
        base_identity=base_identity,
        known_overfits=known_overfits,
    )
    tokenizer = load_tokenizer(base_model)
    rows = preflight.read_rows(tokenizer, training_data=training_data, holdout=holdout)
    if not is_data_only:
        precision = choose_precision(config.training.dtype)
        require_trainable(config.method, precision.device)
        report.progress(0.01, "loading the base model")
        preflight.try_model(load_for_training(base_model, rows, config, precision), rows, precision)
    return preflight.conclude()
