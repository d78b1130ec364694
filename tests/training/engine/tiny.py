"""A tiny model with an adapter, and a few rows, for tests."""

import torch
from peft import PeftModel

from tests.fixtures.models import random_llama
from training.engine.chat import ChatRow, render_rows
from training.engine.config import LoraSettings
from training.engine.data.examples import ChatMessage, Example
from training.engine.lora_model import add_lora, load_base_model, load_tokenizer

ANSWERS = ("red", "green apples", "blue sky at noon", "one two three four five")


def make_rows() -> tuple[ChatRow, ...]:
    examples = [
        Example(
            example_id=str(i),
            messages=(ChatMessage("user", f"Say {i}" + " again" * i), ChatMessage("assistant", answer)),
        )
        for i, answer in enumerate(ANSWERS)
    ]
    tokenizer = load_tokenizer(random_llama())
    return render_rows(tokenizer, examples, system_prompt=None, max_length_tokens=200).rows


def make_model(*, attention: str = "eager", dropout: float = 0.0) -> PeftModel:
    base = load_base_model(
        random_llama(), dtype=torch.float32, attention=attention, device=torch.device("cpu")
    )
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = add_lora(base, LoraSettings(r=4, lora_alpha=8, lora_dropout=dropout), base_model_name="tiny")
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                parameter.data.normal_(0.0, 0.02)
    return model
