"""Trainings of a tiny model with a fault planted, run until they stop."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from tests.fixtures.models import random_llama
from training.engine.chat import ChatRow, ChatTokenizer, render_rows
from training.engine.checkpoints import CheckpointFolder
from training.engine.config import LoraSettings, OptimisationSettings
from training.engine.data.examples import ChatMessage, Example
from training.engine.device import Precision
from training.engine.errors import NotFinite
from training.engine.forensics.step_history import StepHistory
from training.engine.forensics.training_inputs import TrainingInputs, make_decoder
from training.engine.lora_model import add_lora, load_base_model, load_tokenizer
from training.engine.progress import SilentReporter
from training.engine.trained_model import AdapterModel
from training.engine.training_loop import TrainingLoop

CPU = torch.device("cpu")
FLOAT32 = Precision(CPU, torch.float32)
FLOAT16 = Precision(CPU, torch.float16)
RARE_WORD = " zebra"
POISONED_ID = "e9"

Damage = Callable[[torch.nn.Module], None]


@functools.cache
def tokenizer() -> ChatTokenizer:
    """Return that of the model; reading it takes longer than a step."""
    return load_tokenizer(random_llama())


@functools.cache
def make_rows(count: int = 12) -> tuple[ChatRow, ...]:
    """Return rows of which `POISONED_ID` alone has the rare word."""
    examples = [
        Example(
            example_id=f"e{i}",
            messages=(
                ChatMessage("user", f"Say {i}" + " again" * (i % 5) + RARE_WORD * (f"e{i}" == POISONED_ID)),
                ChatMessage("assistant", ("red", "green apples", "blue sky at noon")[i % 3]),
            ),
        )
        for i in range(count)
    ]
    return render_rows(tokenizer(), examples, system_prompt=None, max_length_tokens=200).rows


def rare_token() -> int:
    (token,) = tokenizer().encode(RARE_WORD, add_special_tokens=False)
    return token


def make_rare_word_meet(weight: float) -> Damage:
    """Return what lets the rare word alone meet huge weights of the first MLP.

    Its embedding points along one dimension that all others lack, so RMSNorm makes it sqrt(64) = 8 there;
    gate and up projection are 8 times the weight, and are multiplied. Adapters on o_proj would give the
    others a part of that dimension; there are none.
    """

    def damage(base: torch.nn.Module) -> None:
        embedding = base.get_parameter("model.embed_tokens.weight").data
        embedding[:, 0] = 0.0
        embedding[rare_token()] = torch.eye(64)[0]
        base.get_parameter("model.layers.0.self_attn.o_proj.weight").data[0] = 0.0
        for name in ("gate_proj", "up_proj"):
            base.get_parameter(f"model.layers.0.mlp.{name}.weight").data[:, 0] = weight

    return damage


def break_rare_embedding(base: torch.nn.Module) -> None:
    """Make the embedding of the rare word NaN."""
    base.get_parameter("model.embed_tokens.weight").data[rare_token()] = torch.nan


def spare(base: torch.nn.Module) -> None:
    """Damage nothing."""


def make_settings(**changes: object) -> OptimisationSettings:
    values: dict[str, object] = {
        "learning_rate": 1e-2, "max_steps": 6, "per_device_batch_size": 2, "gradient_accumulation_steps": 2,
        "gradient_checkpointing": False, "save_every_steps": 1, "lr_scheduler": "constant",
        "warmup_fraction": 0.0, "seed": 7,
    }  # fmt: skip
    return OptimisationSettings(**{**values, **changes})  # type: ignore[arg-type]


def make_inputs(
    path: Path | None,
    *,
    damage: Damage = spare,
    precision: Precision = FLOAT32,
    num_kept: int = 100,
    settings: OptimisationSettings | None = None,
) -> TrainingInputs:
    def load(precision: Precision) -> AdapterModel:
        base = load_base_model(
            random_llama(tie_word_embeddings=False), dtype=torch.float32, attention="eager", device=CPU
        )
        damage(base)
        with torch.random.fork_rng():
            torch.manual_seed(0)
            lora = LoraSettings(
                r=4, lora_alpha=8, lora_dropout=0.1, target_modules=("q_proj", "v_proj", "down_proj")
            )
            return AdapterModel(add_lora(base.to(precision.dtype), lora, base_model_name="tiny"))

    return TrainingInputs(
        load_model=load,
        rows=make_rows(),
        pad_token_id=0,
        settings=settings or make_settings(),
        precision=precision,
        checkpoints=None if path is None else CheckpointFolder(path, identity="run", num_kept=num_kept),
        decode=make_decoder(tokenizer()),
    )


@dataclass
class Stopped:
    error: NotFinite
    loop: TrainingLoop
    history: StepHistory


def make_loop(inputs: TrainingInputs, history: StepHistory, rows: Sequence[ChatRow] = ()) -> TrainingLoop:
    return TrainingLoop(
        model=inputs.load_model(inputs.precision),
        rows=rows or inputs.rows,
        held_out=(),
        pad_token_id=inputs.pad_token_id,
        settings=inputs.settings,
        precision=inputs.precision,
        report=SilentReporter(),
        observers=(history,),
        checkpoints=inputs.checkpoints,
    )


def run_until_stopped(inputs: TrainingInputs) -> Stopped:
    history = StepHistory()
    loop = make_loop(inputs, history)
    with torch.random.fork_rng(), pytest.raises(NotFinite) as caught:
        loop.train()
    return Stopped(caught.value, loop, history)
