"""A tiny model that knows a little, and a small task, for trainings that behave like real ones.

A random model begins at a loss of ln(vocabulary) and says nothing about healthy curves; this one was trained
on other tickets with other answers first, so that an adapter has something to build on.
"""

import atexit
import functools
import json
import random
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from gguf import GGUFReader
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

from tests.fixtures.models import SPECIAL_TOKENS, build_random_llama
from training.engine.base_models import locate_smollm2_gguf
from training.engine.batches import collate
from training.engine.chat import ChatRow, render_rows
from training.engine.data.examples import ChatMessage, Example
from training.engine.lora_model import load_tokenizer

PRODUCTS = ("printer", "router", "screen", "phone", "camera", "heater", "lamp", "drone")
FAULTS = ("broken", "late", "noisy", "dirty", "slow", "hot")
CITIES = ("Rome", "Oslo", "Lima", "Cairo", "Delhi", "Paris", "Quito")
URGENT = ("broken", "hot")
PRETRAINING_STEPS = 250
VOCABULARY_SIZE = 1024
"""The first of SmolLM2's tokens: its special ones, the bytes and some hundred merges."""

Line = Mapping[str, Any]


def make_lines(count: int, *, seed: int = 0, prefix: str = "e", words: int = 6) -> list[dict[str, Any]]:
    """Return tickets with structured answers; no two inputs are alike."""
    chooser = random.Random(seed)
    lines = []
    for index in range(count):
        product, fault, city = (chooser.choice(names) for names in (PRODUCTS, FAULTS, CITIES))
        number = chooser.randrange(10_000)
        filler = " ".join(chooser.choice(CITIES) for _ in range(chooser.randrange(words)))
        urgency = "high" if fault in URGENT else "low"
        answer = json.dumps({"product": product, "fault": fault, "urgency": urgency})
        question = f"Ticket {number}: the {product} from {city} is {fault}. {filler}".strip()
        lines.append(make_line(f"{prefix}{index}", question, answer))
    return lines


def make_line(example_id: str, question: str, answer: str) -> dict[str, Any]:
    messages = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return {"id": example_id, "messages": messages}


def write_lines(path: Path, lines: Sequence[Line]) -> Path:
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
    return path


@functools.cache
def pretrained_llama() -> Path:
    """Return the folder of the tiny model, built once per test process; do not write into it."""
    folder = Path(tempfile.mkdtemp(prefix="assay-tiny-llama-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _write_tokenizer(folder / "tokenizer")
    base = build_random_llama(
        folder / "random",
        dtype=torch.float32,
        tie_word_embeddings=False,
        tokenizer_from=folder / "tokenizer",
    )
    model: Any = AutoModelForCausalLM.from_pretrained(base, dtype=torch.float32)
    with torch.no_grad():
        # The output layer is frozen later; with the small weights of the start no loss could come near 0.
        model.lm_head.weight.mul_(10.0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        _pretrain(model, _pretraining_rows(base))
    model.to(torch.bfloat16).save_pretrained(folder / "model")
    for path in base.iterdir():
        if not (folder / "model" / path.name).exists():
            shutil.copy(path, folder / "model" / path.name)
    return folder / "model"


def copy_base(folder: Path) -> Path:
    """Return a copy of the tiny model to plant faults into."""
    return shutil.copytree(pretrained_llama(), folder)


def _write_tokenizer(folder: Path) -> None:
    fields = GGUFReader(str(locate_smollm2_gguf())).fields
    tokens: list[str] = fields["tokenizer.ggml.tokens"].contents()[:VOCABULARY_SIZE]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    pairs = [tuple(merge.split(" ", 1)) for merge in fields["tokenizer.ggml.merges"].contents()]
    merges = [pair for pair in pairs if "".join(pair) in vocabulary]
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(token, normalized=False) for token in tokens[:SPECIAL_TOKENS]])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token=tokens[1], eos_token=tokens[2], pad_token=tokens[2],
        unk_token=tokens[0], model_max_length=8192,
    )  # fmt: skip
    tokenizer.chat_template = fields["tokenizer.chat_template"].contents()
    tokenizer.save_pretrained(folder)


def _pretraining_rows(base: Path) -> Sequence[ChatRow]:
    chooser = random.Random(1)
    examples = []
    for index in range(400):
        words = [chooser.choice((*PRODUCTS, *FAULTS, *CITIES, "high", "low")) for _ in range(4)]
        answer = json.dumps({word: chooser.choice(words) for word in ("first", "second", "third")})
        messages = (ChatMessage("user", "Words: " + " ".join(words)), ChatMessage("assistant", answer))
        examples.append(Example(example_id=str(index), messages=messages))
    tokenizer = load_tokenizer(base)
    return render_rows(tokenizer, examples, system_prompt=None, max_length_tokens=500).rows


def _pretrain(model: Any, rows: Sequence[ChatRow]) -> None:
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for step in range(PRETRAINING_STEPS):
        batch = collate([rows[(8 * step + i) % len(rows)] for i in range(8)], pad_token_id=0)
        loss = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask, labels=batch.labels).loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
