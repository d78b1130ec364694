"""The second stage: a few examples learnt by heart (MISSION T1(2), T3).

A pipeline that cannot do this has a fault that no amount of data mends. The attempt runs with the trainer's
own step, on an adapter of its own (for full training: on the weights, which are put back), and leaves the
base, its settings and torch's random state as they were.
"""

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Final

import torch
from torch import nn
from transformers import PreTrainedModel

from registry.artifacts.digests import digest_json
from training.engine.batches import Batch, collate
from training.engine.chat import ChatRow
from training.engine.config import OptimisationSettings, TrainingConfig
from training.engine.device import Precision
from training.engine.errors import TrainingEngineError
from training.engine.full_model import FullModel
from training.engine.handbook.rows import HandbookRow
from training.engine.lora_model import add_lora
from training.engine.optimiser_step import OptimiserStep
from training.engine.preflight.outcomes import failed, passed
from training.engine.preflight.refusals import as_failed_check
from training.engine.preflight.report import CheckResult, OverfitResult
from training.engine.process_group import SingleProcess
from training.engine.random_state import own_random_state
from training.engine.trained_model import AdapterModel, TrainedModel

CODE: Final = "overfit"
LOSS_THRESHOLD: Final = 0.1
"""MISSION T3: the mean loss per trained token, in nats, that the examples must come below."""
ADAPTER_LEARNING_RATE: Final = 3e-3
"""Constant rate of the attempt, well above that of a training (2e-4). Ten examples took 6 steps with
SmolLM2-135M (bfloat16, snips) and 42 with a two-layer model of width 64 (float32, rank 8), which did not get
there in 60 with 1e-3."""
FULL_LEARNING_RATE: Final = 3e-4
"""Likewise for all weights: 47 steps with the two-layer model; 1e-4 did not get there in 60."""
ATTEMPT_VERSION: Final = 1
"""Raised when the attempt changes so that an earlier pass says nothing about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OverfitAttempt:
    """The attempt and what it means.

    Attributes:
        result: For the report.
        check: Passed or failed, with the losses as evidence.
    """

    result: OverfitResult
    check: CheckResult


def identify_overfit(
    *,
    base_identity: str,
    chat_template: str | None,
    libraries: dict[str, str],
    config: TrainingConfig,
    precision: Precision,
) -> str:
    """Return the sha256 of what an attempt says something about; one that passed need not be made again.

    Args:
        base_identity: Of the base: its digest, or `identify_base`.
        chat_template: Its text; None without one.
        libraries: Name to version.
        config: Method, target modules, rank and kind of the adapter count.
        precision: Device and number format.
    """
    lora = config.lora
    return digest_json(
        {
            "version": ATTEMPT_VERSION,
            "base": base_identity,
            "chat_template": chat_template,
            "libraries": libraries,
            "method": config.method,
            "lora": None
            if config.method == "full"
            else {
                "target_modules": sorted(lora.target_modules),
                "r": lora.r,
                "scaling": lora.scaling,
                "use_dora": lora.use_dora,
                "layers": config.to_json()["lora"]["layers"],
            },
            "dtype": precision.dtype_name,
            "device": precision.device.type,
        }
    )


def identify_base(base_model: Path) -> str:
    """Return a cheap identity of a base's folder: its configuration, and names and sizes of its weights.

    Hashing the weights takes minutes for large models; who has the digest already gives that instead.

    Args:
        base_model: Hugging Face folder.
    """
    return digest_json(
        {
            "config": (base_model / "config.json").read_text(encoding="utf-8"),
            "files": {path.name: path.stat().st_size for path in sorted(base_model.glob("*.safetensors"))},
        }
    )


def known_overfit(fingerprint: str) -> OverfitAttempt:
    """Return the outcome where an attempt with this fingerprint passed before."""
    return OverfitAttempt(
        result=OverfitResult(status="known", num_examples=0, num_steps=0, losses=(), fingerprint=fingerprint),
        check=passed(CODE, "left out: it passed before with this base, these libraries and this adapter"),
    )


def choose_examples(rows: Sequence[ChatRow], count: int, *, seed: int) -> list[ChatRow]:
    """Return a random choice of rows of at most median length; no two have the same prompt, since two answers
    to one prompt cannot both be learnt by heart.

    Args:
        rows: At least one.
        count: So many at most; fewer where there are fewer prompts.
        seed: Decides the choice.
    """
    middle = median(len(row.input_ids) for row in rows)
    first: dict[tuple[int, ...], ChatRow] = {}
    for row in rows:
        if len(row.input_ids) <= middle:
            first.setdefault(row.input_ids[: row.num_prompt_tokens], row)
    candidates = list(first.values())
    chosen = random.Random(seed).sample(  # noqa: S311 (a choice, not a secret)
        range(len(candidates)), min(count, len(candidates))
    )
    return [candidates[index] for index in sorted(chosen)]


def try_overfit(
    base: PreTrainedModel,
    rows: Sequence[ChatRow],
    config: TrainingConfig,
    precision: Precision,
    *,
    pad_token_id: int,
    fingerprint: str,
) -> OverfitAttempt:
    """Learn a few examples by heart, and put everything back.

    Each step computes all examples, so that its loss is their mean loss exactly; the attempt ends with the
    step that finds it below `LOSS_THRESHOLD`. Dropout is 0, and the learning rate constant.

    Args:
        base: Loaded for this training, without an adapter.
        rows: Of the training, at least one.
        config: Of the training.
        precision: Of the training.
        pad_token_id: Any valid id.
        fingerprint: Of the attempt.
    """
    chosen = choose_examples(rows, config.preflight.overfit_examples, seed=config.training.seed)
    # A CPU has the memory for all at once, and a small model takes as long for one row as for ten.
    size = len(chosen) if precision.device.type == "cpu" else config.training.per_device_batch_size
    batches = [
        collate(chosen[start : start + size], pad_token_id=pad_token_id)
        for start in range(0, len(chosen), size)
    ]
    losses: list[float] = []
    refusal: CheckResult | None = None
    try:
        with (
            own_random_state(precision.device, config.training.seed),
            borrowed_model(base, config) as model,
        ):
            for loss in _learn(model, batches, config, precision):
                losses.append(loss)
    except TrainingEngineError as error:
        refusal = as_failed_check(error)
    has_passed = refusal is None and bool(losses) and losses[-1] < LOSS_THRESHOLD
    result = OverfitResult(
        status="passed" if has_passed else "failed",
        num_examples=len(chosen),
        num_steps=max(0, len(losses) - 1),
        losses=tuple(losses),
        fingerprint=fingerprint,
    )
    return OverfitAttempt(result=result, check=refusal or _judge(result))


@contextmanager
def borrowed_model(base: PreTrainedModel, config: TrainingConfig) -> Iterator[TrainedModel]:
    """Give a model to train on the base's weights, and put the base back as it was.

    An adapter is fresh, without dropout, and taken off again; for full training the weights are copied to the
    CPU and written back.

    Args:
        base: Without an adapter; it is changed inside the block.
        config: Decides the method and the adapter's shape.
    """
    is_full = config.method == "full"
    needed = [(parameter, parameter.requires_grad) for parameter in base.parameters()]
    kept = [parameter.detach().to("cpu", copy=True) for parameter in base.parameters()] if is_full else []
    was_training = base.training
    own_attributes = set(vars(base))
    own_hooks = {module: set(module._forward_hooks) for module in base.modules()}
    adapted: Any = None
    try:
        if is_full:
            yield FullModel(base, base_model=None)
        else:
            adapted = add_lora(base, replace(config.lora, lora_dropout=0.0), base_model_name="preflight")
            yield AdapterModel(adapted)
    finally:
        if adapted is not None:
            adapted.unload()
        _reset(base, own_attributes, own_hooks)
        with torch.no_grad():
            for (parameter, _), weights in zip(needed, kept, strict=False):
                parameter.copy_(weights)
        for parameter, requires_grad in needed:
            parameter.requires_grad_(requires_grad)
            parameter.grad = None
        base.train(was_training)


def _learn(
    model: TrainedModel, batches: Sequence[Batch], config: TrainingConfig, precision: Precision
) -> Iterator[float]:
    """Yield the mean loss before each step and, when all steps are done, after the last one."""
    rate = FULL_LEARNING_RATE if config.method == "full" else ADAPTER_LEARNING_RATE
    settings: OptimisationSettings = replace(
        config.training, learning_rate=rate, weight_decay=0.0, max_grad_norm=1.0
    )
    shortest = min(batches, key=lambda batch: batch.num_tokens)
    loss = model.prepare(
        shortest.to(precision.device), precision, gradient_checkpointing=settings.gradient_checkpointing
    )
    step = OptimiserStep(
        model=model, loss=loss, settings=settings, precision=precision, group=SingleProcess()
    )
    model.module.train()
    for number in range(1, config.preflight.overfit_max_steps + 2):
        # The pass after the last step only measures, so its step is made with rate 0.
        is_last = number > config.preflight.overfit_max_steps
        outcome = step.run(number, batches, learning_rate=0.0 if is_last else rate)
        mean = outcome.loss_sum / outcome.num_trained_tokens
        yield mean
        if mean < LOSS_THRESHOLD:
            return


def _judge(result: OverfitResult) -> CheckResult:
    first, last = (result.losses[0], result.losses[-1]) if result.losses else (math.nan, math.nan)
    curve = f"from {first:.3f} to {last:.3f} in {result.num_steps} steps"
    if result.status == "passed":
        return passed(CODE, f"{result.num_examples} examples are learnt by heart: loss {curve}")
    lowest = min(result.losses, default=math.nan)
    return failed(
        CODE,
        HandbookRow.CANNOT_OVERFIT,
        f"{result.num_examples} examples cannot be learnt by heart: loss {curve}, lowest {lowest:.3f}, and "
        f"it must come below {LOSS_THRESHOLD}",
        remedy="Read the decoded batches first, then look at what is adapted (lora.target_modules, lora.r) "
        "and at the number format; more data cannot help. A base model without a trained output layer needs "
        "more steps (preflight.overfit_max_steps).",
    )


def _reset(base: PreTrainedModel, own_attributes: set[str], own_hooks: Mapping[nn.Module, set[int]]) -> None:
    """Take off what training puts on a base: checkpointing, the hooks at its inputs, PEFT's marks."""
    model: Any = base
    if getattr(model, "is_gradient_checkpointing", False):
        model.gradient_checkpointing_disable()
    # transformers' own disable_input_require_grads forgets hooks that were put on twice, as they are here.
    for module, kept in own_hooks.items():
        for hook in set(module._forward_hooks) - kept:
            del module._forward_hooks[hook]
    for name in set(vars(base)) - own_attributes:
        delattr(base, name)
