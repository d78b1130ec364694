"""The small experiment: a preflight, a short training, and a look at what the trained model answers."""

import random
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, cast

import torch
from peft import PeftModel
from transformers import PreTrainedModel

from training.engine.chat import ChatTokenizer, find_end_token_id, render_prompt_ids, with_system_prompt
from training.engine.config import TrainingConfig
from training.engine.data.examples import Example
from training.engine.data.jsonl import list_jsonl_files, read_examples
from training.engine.device import choose_precision, weights_dtype
from training.engine.errors import NotFinite, TrainingFailed
from training.engine.lora_model import load_base_model, load_tokenizer
from training.engine.mini.judging import judge_loss, judge_samples
from training.engine.mini.report import RECORD_NAME, MiniCheck, MiniReport, MiniSample, check
from training.engine.parallel.task import TrainingTask
from training.engine.preflight.data_stage import read_stop_ids
from training.engine.progress import RunReporter, SilentReporter
from training.engine.step_record import HeldOutRecord, StepRecord
from training.engine.training_rows import read_training_rows
from training.engine.watched_training import run_watched_training

NUM_SAMPLES: Final = 5
"""As many as a person reads in a minute."""
MAX_NEW_TOKENS: Final = 256
_VERDICTS: Final = frozenset({"preflight-failed", "loss-not-finite", "lora-without-gradient"})
"""Errors that are the verdict of the experiment, not a fault of the machine."""


class LossCurve:
    """An observer that keeps the loss of every step."""

    def __init__(self) -> None:
        self.losses: list[float] = []

    def on_step(self, record: StepRecord) -> None:
        """Keep a step's loss."""
        self.losses.append(record.loss)

    def on_held_out(self, record: HeldOutRecord) -> None:
        """Ignore a measurement."""


def run_mini(task: TrainingTask, *, report: RunReporter, scratch: Path) -> MiniReport:
    """Make the experiment and record its verdict as "mini".

    Args:
        task: The training, its configuration already cut to a small one; what it writes is thrown away.
        report: Receives everything that a training reports, and the verdict.
        scratch: Existing folder for the adapter.

    Raises:
        TrainingEngineError: What `run_watched_training` raises and is no verdict: unreadable data, a base
            that cannot be loaded.
    """
    task = replace(task, output=scratch / "mini", checkpoints=None, known_overfits=task.known_overfits or ())
    curve = LossCurve()
    try:
        run_watched_training(task, report=report, scratch=scratch, observers=(curve,))
    except TrainingFailed as error:
        if error.code not in _VERDICTS and not isinstance(error, NotFinite):
            raise
        result = MiniReport(checks=(check(error.code, False, "", error.message),))
    else:
        report.progress(0.97, "asking the trained model")
        samples = answer_samples(task)
        result = MiniReport(
            checks=(_data_check(), judge_loss(curve.losses), *judge_samples(samples)), samples=samples
        )
    report.record(RECORD_NAME, result.to_json())
    return result


def _data_check() -> MiniCheck:
    """The preflight stops a training whose format, template or mask is wrong; this one went on."""
    return check("data-sound", True, "Format, template and label mask are right (preflight).", "")


def answer_samples(task: TrainingTask) -> tuple[MiniSample, ...]:
    """Let the trained model answer a few examples, greedily; those that it has not seen where there are any.

    Args:
        task: A training that has been done.
    """
    tokenizer = load_tokenizer(task.base_model)
    examples = choose_samples(task, tokenizer)
    model = _load_trained(task)
    end_token_id = find_end_token_id(tokenizer)
    stop_ids = sorted({end_token_id, *read_stop_ids(tokenizer, task.base_model)})
    return tuple(_answer(model, tokenizer, example, task.config, stop_ids) for example in examples)


def choose_samples(task: TrainingTask, tokenizer: ChatTokenizer) -> list[Example]:
    """Return a few examples to ask: held-out ones, else training ones that were not chosen, else any."""
    if task.holdout is not None:
        candidates = _read(task.holdout)
    else:
        every = [example for example in _read(task.training_data) if not example.is_general]
        trained = _list_trained_ids(task, tokenizer)
        candidates = [example for example in every if example.example_id not in trained] or every
    generator = random.Random(task.config.training.seed)  # noqa: S311 (a choice, not a secret)
    return generator.sample(candidates, min(NUM_SAMPLES, len(candidates)))


def _list_trained_ids(task: TrainingTask, tokenizer: ChatTokenizer) -> frozenset[str]:
    rows = read_training_rows(
        tokenizer, training_data=task.training_data, holdout=None, config=task.config, report=SilentReporter()
    )
    return frozenset(row.example_id for row in rows.training)


def _read(path: Path) -> list[Example]:
    return [example for file in list_jsonl_files(path) for example in read_examples(file)]


def _load_trained(task: TrainingTask) -> PreTrainedModel | PeftModel:
    precision = choose_precision(task.config.training.dtype)
    is_full = task.config.method == "full"
    model: Any = load_base_model(
        task.output if is_full else task.base_model,
        dtype=precision.dtype if is_full else weights_dtype(task.config.method, precision),
        attention="sdpa",
        device=precision.device,
        has_4bit_weights=task.config.method == "qlora",
    )
    if not is_full:
        model = PeftModel.from_pretrained(model, task.output)
    model.eval()
    model.config.use_cache = True
    return cast(PreTrainedModel | PeftModel, model)


def _answer(
    model: Any, tokenizer: ChatTokenizer, example: Example, config: TrainingConfig, stop_ids: list[int]
) -> MiniSample:
    messages = with_system_prompt(example, config.data.system_prompt)
    prompt_ids = render_prompt_ids(tokenizer, messages[:-1])
    device = next(model.parameters()).device
    inputs = torch.tensor([prompt_ids], device=device)
    with torch.no_grad():
        output = model.generate(
            input_ids=inputs,
            attention_mask=torch.ones_like(inputs),
            max_new_tokens=MAX_NEW_TOKENS,
            do_sample=False,
            temperature=None,
            top_p=None,
            top_k=None,
            repetition_penalty=1.0,
            eos_token_id=stop_ids,
            pad_token_id=stop_ids[0],
        )
    ids = output[0, len(prompt_ids) :].tolist()
    has_ended = bool(ids) and ids[-1] in stop_ids
    text = tokenizer.decode(ids[:-1] if has_ended else ids, skip_special_tokens=False)
    return MiniSample(
        prompt=messages[-2].content if len(messages) > 1 else "",
        answer=str(text),
        reference=messages[-1].content,
        has_ended=has_ended,
    )
