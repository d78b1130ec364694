"""A tiny adapter and the model merged from it, for tests of the backends."""

import functools
import shutil
import tempfile
from pathlib import Path

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM

from tests.fixtures.models import random_llama

TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


@functools.cache
def tiny_adapter_and_merged() -> tuple[Path, Path]:
    """Return the folders of an adapter for the random Llama and of the merged model, built once per process.

    lora_B is drawn too (PEFT starts it at zero), so that the adapter changes the outputs.
    """
    folder = Path(tempfile.mkdtemp(prefix="assay-tiny-adapter-"))
    with torch.random.fork_rng():
        torch.manual_seed(1)
        base = AutoModelForCausalLM.from_pretrained(random_llama(), dtype=torch.float32)
        model = get_peft_model(
            base, LoraConfig(r=4, lora_alpha=8, target_modules=TARGETS, task_type="CAUSAL_LM")
        )
        for name, parameter in model.named_parameters():
            if "lora_B" in name:
                torch.nn.init.normal_(parameter, std=0.1)
    model.save_pretrained(folder / "adapter")
    model.merge_and_unload().to(torch.bfloat16).save_pretrained(folder / "merged")
    for name in TOKENIZER_FILES:
        if (random_llama() / name).is_file():
            shutil.copy(random_llama() / name, folder / "merged" / name)
    return folder / "adapter", folder / "merged"
