"""Training of a causal language model: configuration and files in, a folder and a typed result out."""

import time
from collections.abc import Collection, Sequence
from pathlib import Path

from transformers import PreTrainedModel

from training.engine.checkpoints import CheckpointFolder
from training.engine.config import TrainingConfig
from training.engine.device import Precision, choose_attention, choose_precision, weights_dtype
from training.engine.fingerprint import list_libraries
from training.engine.loop_models import make_trained_model
from training.engine.lora_model import load_base_model, load_tokenizer, require_trainable
from training.engine.packing.isolation import check_isolation
from training.engine.preflight.stages import Preflight
from training.engine.process_group import ProcessGroup, SingleProcess
from training.engine.progress import RunReporter, SilentReporter
from training.engine.random_state import own_random_state
from training.engine.run_identity import identify_run
from training.engine.step_record import StepObserver
from training.engine.training_loop import TrainingLoop
from training.engine.training_result import TrainingResult
from training.engine.training_rows import TrainingRows, read_training_rows


def run_training(
    *,
    base_model: Path,
    training_data: Path,
    holdout: Path | None,
    config: TrainingConfig,
    output: Path,
    report: RunReporter,
    base_model_name: str | None = None,
    checkpoints: Path | None = None,
    observers: Sequence[StepObserver] = (),
    group: ProcessGroup | None = None,
    known_overfits: Collection[str] | None = None,
) -> TrainingResult:
    """Train a LoRA adapter and write it as a PEFT folder; with the method "full", train all weights and write
    a model folder.

    The same inputs and configuration give the same adapter on the same machine with the same number of
    threads. torch's global random state is left as it was.

    Args:
        base_model: Hugging Face folder.
        training_data: JSONL file, or a folder whose ``*.jsonl`` files are all used.
        holdout: Likewise, for the held-out loss; None leaves it out.
        config: Everything else that decides the run.
        output: Folder to create; complete or absent.
        report: Receives progress, and at intervals the metrics loss, learning_rate, gradient_norm,
            tokens_per_second, padding_fraction and held_out_loss.
        base_model_name: Written into adapter_config.json; None takes the folder's name.
        checkpoints: Folder for checkpoints. One that an earlier attempt at the same training left is gone on
            from, to the same result; others are ignored. None keeps none.
        observers: Are told of every step.
        group: The processes that train together, each with the same arguments; only the first one reports,
            is watched, and writes files. None is this process alone.
        known_overfits: Fingerprints for `training.engine.preflight.stages.Preflight`, which is then carried
            out first and recorded as "preflight". None leaves the preflight out.

    Raises:
        DataInvalid: Unreadable lines, or no row left to train on (``no-rows-left``).
        ChatTemplateUnsuitable: The template cannot be trained with.
        ConfigInvalid: ``target-modules-not-found``, ``layers-out-of-range``, ``qlora-needs-cuda`` or
            ``qlora-needs-bitsandbytes``.
        BaseModelUnavailable: Base or tokenizer cannot be loaded.
        NotFinite: The loss or the gradient of a step.
        TrainingFailed: ``preflight-failed``; ``lora-without-gradient``, ``saved-adapter-differs``,
            ``adapter-not-trained``; for a full training ``weights-without-gradient``,
            ``saved-model-differs``, ``model-not-trained``; and ``packing-leaks``, ``checkpoint-unreadable``
            or ``checkpoints-differ``.
        FileExistsError: If ``output`` exists and is not empty.
    """
    begun = time.monotonic()
    group = group or SingleProcess()
    if group.rank != 0:
        report, observers = SilentReporter(), ()
    precision = choose_precision(config.training.dtype)
    require_trainable(config.method, precision.device)
    report.progress(0.0, "reading the training data")
    tokenizer = load_tokenizer(base_model)
    preflight: Preflight | None = None
    if known_overfits is None:
        rows = read_training_rows(
            tokenizer, training_data=training_data, holdout=holdout, config=config, report=report
        )
    else:
        preflight = Preflight(
            base_model=base_model, config=config, report=report, known_overfits=known_overfits, group=group
        )
        rows = preflight.read_rows(tokenizer, training_data=training_data, holdout=holdout)
    with own_random_state(precision.device, config.training.seed):
        report.progress(0.01, "loading the base model")
        base = load_for_training(base_model, rows, config, precision)
        if preflight is not None:
            preflight.try_model(base, rows, precision)
            preflight.conclude()
        elif config.training.packing:
            check_packing(base, rows, precision, report)
        model = make_trained_model(
            base, config, base_model=base_model, base_model_name=base_model_name, group=group
        )
        loop = TrainingLoop(
            model=model,
            rows=rows.training,
            held_out=rows.held_out,
            pad_token_id=rows.pad_token_id,
            settings=config.training,
            precision=precision,
            report=report,
            observers=observers,
            checkpoints=open_checkpoints(checkpoints, base_model, rows, config),
            group=group,
        )
        loop.train()
        model.save(output, group)
    group.wait_for_all()
    report.progress(1.0, "saved")
    return _summarise(loop, rows, config, precision, group, duration_seconds=time.monotonic() - begun)


def load_for_training(
    base_model: Path, rows: TrainingRows, config: TrainingConfig, precision: Precision
) -> PreTrainedModel:
    """Load the base in the format that the method needs: float32 for full training, whose weights must take
    up changes smaller than the rounding of bfloat16.

    Raises:
        BaseModelUnavailable: The base cannot be loaded.
    """
    longest = config.training.max_length_tokens if config.training.packing else rows.longest_tokens
    return load_base_model(
        base_model,
        dtype=weights_dtype(config.method, precision),
        attention=choose_attention(precision, longest),
        device=precision.device,
        has_4bit_weights=config.method == "qlora",
    )


def check_packing(
    base: PreTrainedModel, rows: TrainingRows, precision: Precision, report: RunReporter
) -> None:
    """Try out on the base that packed rows do not see each other, and log by how much.

    Raises:
        TrainingFailed: ``packing-leaks``.
    """
    shortest = sorted(rows.training, key=lambda row: len(row.input_ids))
    found = check_isolation(base, shortest, pad_token_id=rows.pad_token_id, precision=precision)
    report.log(
        "info",
        f"Packing keeps {found.num_rows} rows apart: their logits differ from those of the rows alone by "
        f"{found.alone_difference:.2g} of the largest (allowed: {found.tolerance:.2g}), and by "
        f"{found.change_difference:.2g} (allowed: {found.change_tolerance:.2g}) when the others are changed.",
    )


def open_checkpoints(
    path: Path | None, base_model: Path, rows: TrainingRows, config: TrainingConfig
) -> CheckpointFolder | None:
    """Return the checkpoints of exactly this training in a folder; None without one."""
    if path is None:
        return None
    identity = identify_run(
        base_model=base_model,
        rows=rows.training,
        held_out=rows.held_out,
        config=config,
        libraries=list_libraries(config.method),
    )
    return CheckpointFolder(path, identity=identity)


def _summarise(
    loop: TrainingLoop,
    rows: TrainingRows,
    config: TrainingConfig,
    precision: Precision,
    group: ProcessGroup,
    *,
    duration_seconds: float,
) -> TrainingResult:
    return TrainingResult(
        final_loss=loop.final_loss,
        held_out_loss=loop.held_out_loss,
        best_step=loop.stopping.best_step or None,
        num_steps=loop.num_done,
        num_planned_steps=loop.num_steps,
        num_skipped_steps=loop.num_skipped_steps,
        stop_reason=loop.stop_reason,
        resumed_from_step=loop.resumed_from_step,
        num_rows=len(rows.training),
        num_dropped_rows=rows.num_dropped,
        num_trained_tokens=loop.meter.num_trained_tokens,
        num_input_tokens=loop.meter.num_tokens,
        num_trainable_parameters=sum(parameter.numel() for parameter in loop.trainables.values()),
        padding_fraction=loop.meter.padding_fraction,
        tokens_per_second=loop.meter.tokens_per_second,
        duration_seconds=duration_seconds,
        num_processes=group.size,
        peak_memory_bytes=loop.peak_memory_bytes,
        dtype=precision.dtype_name,
        device=precision.device.type,
        method=config.method,
    )
