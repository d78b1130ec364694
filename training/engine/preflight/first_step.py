"""The third stage: the first real step, measured without being made (MISSION T1(3), FACTS section 4)."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import torch
from peft.tuners.lora import LoraLayer
from torch import nn

from training.engine.batches import Batch
from training.engine.config import TrainingConfig
from training.engine.device import Precision
from training.engine.handbook.rows import HandbookRow
from training.engine.lora_dropout import BlockDropout
from training.engine.preflight.outcomes import failed, passed, skipped
from training.engine.preflight.report import CheckResult, FirstStepResult
from training.engine.preflight.token_rows import make_batch, split_batch
from training.engine.random_state import own_random_state
from training.engine.trained_model import BatchLoss, TrainedModel

NUM_ACCUMULATED: Final = 4
ACCUMULATION_TOLERANCES: Final = {torch.float32: 1e-3, torch.float16: 2e-2, torch.bfloat16: 5e-2}
"""Largest relative difference between the gradients of four rows in one batch and in four. Rounding alone
gives 0.002 in bfloat16 (measured, SmolLM2-135M on snips); batches that are weighted alike are far beyond."""
_FLOAT16_SCALE: Final = 1024.0
"""Keeps gradients in float16 from vanishing; only whether they are there is looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstStepFindings:
    """What the first step showed.

    Attributes:
        result: The numbers.
        checks: What they mean.
    """

    result: FirstStepResult
    checks: tuple[CheckResult, ...]


def examine_first_step(
    model: TrainedModel,
    loss: BatchLoss,
    batches: Sequence[Batch],
    config: TrainingConfig,
    precision: Precision,
    *,
    pad_token_id: int,
) -> FirstStepFindings:
    """Compute the gradients of the first step and look at them; no weight changes, and gradients, modes and
    torch's random state are afterwards as they were.

    Args:
        model: Prepared for training.
        loss: What its `prepare` returned.
        batches: Of the first step, on the CPU; at least one.
        config: Of the training.
        precision: Of the training.
        pad_token_id: Any valid id.
    """
    with ExitStack() as stack:
        stack.enter_context(own_random_state(precision.device, config.training.seed))
        stack.enter_context(_training_mode(model))
        silent = _list_silent(model, loss, batches, config, precision)
        with_checkpointing, without = _measure_saved(model, loss, batches[0], config, precision)
        difference = _compare_accumulation(model, loss, batches, precision, pad_token_id)
    trainables = dict(model.trainables)
    expected = count_expected(model.module, config)
    result = FirstStepResult(
        num_trainable=sum(parameter.numel() for parameter in trainables.values()),
        num_expected_trainable=expected,
        num_without_gradient=len(silent),
        saved_bytes_with_checkpointing=with_checkpointing,
        saved_bytes_without=without,
        accumulation_difference=difference,
    )
    return FirstStepFindings(
        result=result,
        checks=(
            check_formats(trainables),
            check_frozen(model.module),
            check_count(result),
            check_gradients(silent, len(trainables)),
            check_checkpointing(result, config),
            check_accumulation(result, precision),
        ),
    )


def check_formats(trainables: Mapping[str, nn.Parameter]) -> CheckResult:
    """Trained weights are float32: smaller formats lose the changes."""
    wrong = {
        name: parameter.dtype for name, parameter in trainables.items() if parameter.dtype != torch.float32
    }
    if not wrong:
        return passed("trained-in-float32", f"all {len(trainables)} trained tensors are float32")
    name, dtype = next(iter(wrong.items()))
    return failed(
        "trained-in-float32",
        HandbookRow.NOT_TRAINABLE,
        f"{len(wrong)} of {len(trainables)} trained tensors are not float32 ({name}: {dtype}): steps "
        "smaller than their rounding are lost",
        remedy="Keep the trained weights in float32 and compute products under autocast.",
    )


def check_frozen(module: nn.Module) -> CheckResult:
    """No matrix of the adapter is frozen."""
    adapter = [(name, parameter) for name, parameter in module.named_parameters() if "lora_" in name]
    frozen = [name for name, parameter in adapter if not parameter.requires_grad]
    if not frozen:
        return passed("adapter-not-frozen", f"none of {len(adapter)} matrices of the adapter is frozen")
    return failed(
        "adapter-not-frozen",
        HandbookRow.NOT_TRAINABLE,
        f"{len(frozen)} of {len(adapter)} matrices of the adapter are frozen (for example {frozen[0]}): "
        "they stay what they are",
        remedy="Set requires_grad of every lora_A and lora_B; an adapter that is loaded to be trained on "
        "needs is_trainable=True.",
    )


def check_count(result: FirstStepResult) -> CheckResult:
    """There are as many trainable parameters as the shapes say (MISSION B2)."""
    expected = result.num_expected_trainable
    if expected is None:
        return skipped("trainable-count", "the expected number of parameters is not known")
    if result.num_trainable == expected:
        return passed("trainable-count", f"{expected} parameters are trained, as the shapes say")
    return failed(
        "trainable-count",
        HandbookRow.NOT_TRAINABLE,
        f"{result.num_trainable} parameters are trained; by the shapes of the adapted modules it should be "
        f"{expected}",
        remedy="Look which modules the adapter was put on, and which of its matrices are trained.",
    )


def check_gradients(silent: Sequence[str], num_trainables: int) -> CheckResult:
    """Everything that can learn in the first step has a gradient; lora_A has none while lora_B is zero."""
    if not silent:
        return passed(
            "gradients-arrive", f"gradients arrive at all of {num_trainables} trained tensors' layers"
        )
    return failed(
        "gradients-arrive",
        HandbookRow.NOT_TRAINABLE,
        f"{len(silent)} matrices get no gradient in the first step (for example {', '.join(silent[:3])}): "
        "they would not be trained",
        remedy="Take the modules that are not used out of lora.target_modules; under gradient "
        "checkpointing, let the inputs need gradients (enable_input_require_grads), or switch it off.",
    )


def check_checkpointing(result: FirstStepResult, config: TrainingConfig) -> CheckResult:
    """Gradient checkpointing is active when it is configured: fewer bytes are kept for the backward pass."""
    saved, without = result.saved_bytes_with_checkpointing, result.saved_bytes_without
    if not config.training.gradient_checkpointing or saved is None or without is None:
        return skipped("checkpointing-active", "gradient checkpointing is not configured")
    numbers = f"{saved / 1e6:.1f} MB are kept for the backward pass, {without / 1e6:.1f} MB without it"
    if saved < without:
        return passed("checkpointing-active", f"gradient checkpointing is active: {numbers}")
    return failed(
        "checkpointing-active",
        HandbookRow.NOT_TRAINABLE,
        f"gradient checkpointing is configured and not active: {numbers}",
        remedy="Call gradient_checkpointing_enable on the model itself and keep it in training mode; a "
        "model that does not support it needs gradient_checkpointing set to false, and more memory.",
    )


def check_accumulation(result: FirstStepResult, precision: Precision) -> CheckResult:
    """Four batches of one row give the gradients of one batch of four."""
    difference, tolerance = result.accumulation_difference, ACCUMULATION_TOLERANCES[precision.dtype]
    if difference is None:
        return skipped("accumulation-exact", "the first step has fewer than two rows to compare")
    numbers = (
        f"gradients of {NUM_ACCUMULATED} rows in one batch and one by one differ by {difference:.2g} of "
        "their norm"
    )
    if difference <= tolerance:
        return passed("accumulation-exact", f"{numbers} (allowed: {tolerance:.2g})")
    return failed(
        "accumulation-exact",
        HandbookRow.WRONG_DATA,
        f"{numbers}, and only {tolerance:.2g} is allowed: batches are weighted wrongly, or padding is not "
        "masked",
        remedy="Weight each batch by its trained tokens, and give the model the attention mask.",
    )


def count_expected(module: nn.Module, config: TrainingConfig) -> int | None:
    """Return the number of parameters that should be trained: r (d_in + d_out) for each adapted module, with
    DoRA also its d_out magnitudes; for full training all of them.
    """
    if config.method == "full":
        return sum(parameter.numel() for parameter in module.parameters())
    total = 0
    for layer in module.modules():
        if isinstance(layer, LoraLayer):
            total += config.lora.r * (layer.in_features + layer.out_features)
            total += layer.out_features if config.lora.use_dora else 0
    return total or None


def count_saved_bytes(loss: BatchLoss, batch: Batch, precision: Precision) -> int:
    """Return the bytes that a forward pass keeps for the backward pass, parameters left out.

    Nothing is really kept: the tensors are counted and let go, so that this needs no more memory than a
    forward pass without gradients.

    Args:
        loss: Of the model, in training mode.
        batch: On the CPU.
        precision: Of the training.
    """
    total = 0

    def count(tensor: torch.Tensor) -> None:
        nonlocal total
        if not (isinstance(tensor, nn.Parameter) or isinstance(tensor._base, nn.Parameter)):
            total += tensor.numel() * tensor.element_size()

    def refuse(_: None) -> torch.Tensor:
        raise RuntimeError("this pass is measured only; it has no backward pass")

    with torch.autograd.graph.saved_tensors_hooks(count, refuse), precision.autocast():
        loss.sum(batch.to(precision.device))
    return total


@contextmanager
def without_checkpointing(module: nn.Module) -> Iterator[None]:
    """Switch gradient checkpointing off inside the block."""
    active = [part for part in module.modules() if getattr(part, "gradient_checkpointing", False) is True]
    for part in active:
        vars(part)["gradient_checkpointing"] = False
    try:
        yield
    finally:
        for part in active:
            vars(part)["gradient_checkpointing"] = True


@contextmanager
def _training_mode(model: TrainedModel) -> Iterator[None]:
    """Put the model into training mode without dropout; gradients are zeroed afterwards."""
    modes = [(part, part.training) for part in model.module.modules()]
    model.module.train()
    for part in model.module.modules():
        if isinstance(part, nn.Dropout | BlockDropout):
            part.eval()
    try:
        yield
    finally:
        _clear(model)
        for part, mode in modes:
            part.training = mode


def _list_silent(
    model: TrainedModel,
    loss: BatchLoss,
    batches: Sequence[Batch],
    config: TrainingConfig,
    precision: Precision,
) -> list[str]:
    _accumulate(model, loss, batches, precision)
    is_full = config.method == "full"
    silent = [
        name
        for name, parameter in model.trainables.items()
        if (parameter.ndim > 1 if is_full else "lora_B" in name) and not _has_gradient(parameter)
    ]
    _clear(model)
    return silent


def _measure_saved(
    model: TrainedModel, loss: BatchLoss, batch: Batch, config: TrainingConfig, precision: Precision
) -> tuple[int | None, int]:
    configured = count_saved_bytes(loss, batch, precision)
    if not config.training.gradient_checkpointing:
        return None, configured
    with without_checkpointing(model.module):
        without = count_saved_bytes(loss, batch, precision)
    return configured, without


def _compare_accumulation(
    model: TrainedModel, loss: BatchLoss, batches: Sequence[Batch], precision: Precision, pad_token_id: int
) -> float | None:
    """Return the relative difference of the gradients; None with fewer than two rows."""
    rows = sorted(
        (row for batch in batches for row in split_batch(batch)), key=lambda row: len(row.input_ids)
    )
    # The shortest and the longest: a wrong weight or mask shows where lengths differ.
    half = NUM_ACCUMULATED // 2
    chosen = rows if len(rows) <= NUM_ACCUMULATED else [*rows[:half], *rows[-half:]]
    if len(chosen) < 2:
        return None
    _accumulate(model, loss, [make_batch(chosen, pad_token_id=pad_token_id)], precision)
    together = _take_gradients(model)
    _accumulate(model, loss, [make_batch([row], pad_token_id=pad_token_id) for row in chosen], precision)
    apart = _take_gradients(model)
    norm = sum(float(gradient.square().sum()) for gradient in together.values())
    square = sum(
        float((gradient - apart[name]).square().sum()) if name in apart else float(gradient.square().sum())
        for name, gradient in together.items()
    )
    return float((square / norm) ** 0.5) if norm > 0 else None


def _accumulate(model: TrainedModel, loss: BatchLoss, batches: Sequence[Batch], precision: Precision) -> None:
    """Add gradients weighted by trained tokens, as the optimiser step does."""
    num_trained = sum(batch.num_trained_tokens for batch in batches)
    scale = _FLOAT16_SCALE if precision.dtype == torch.float16 else 1.0
    for batch in batches:
        with precision.autocast():
            value: Any = loss.sum(batch.to(precision.device))
        (value * scale / num_trained).backward()


def _take_gradients(model: TrainedModel) -> dict[str, torch.Tensor]:
    """Return the gradients in float32 and take them off."""
    taken = {
        name: parameter.grad.detach().float()
        for name, parameter in model.trainables.items()
        if parameter.grad is not None
    }
    _clear(model)
    return taken


def _has_gradient(parameter: nn.Parameter) -> bool:
    return parameter.grad is not None and bool(parameter.grad.abs().max() > 0)


def _clear(model: TrainedModel) -> None:
    for parameter in model.module.parameters():
        parameter.grad = None
