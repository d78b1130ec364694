"""The small pretrained model with its rows, ready for the trials on a model."""

from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from tests.training.engine.planted.material import make_lines, pretrained_llama, write_lines
from tests.training.engine.reporters import RecordingReporter
from training.engine.config import TrainingConfig
from training.engine.device import Precision, choose_precision
from training.engine.lora_model import load_tokenizer
from training.engine.trainer import load_for_training
from training.engine.training_rows import TrainingRows, read_training_rows


def make_config(method: str = "lora", **training: Any) -> TrainingConfig:
    return TrainingConfig.from_json(
        {
            "method": method,
            "training": {"dtype": "float32", "gradient_accumulation_steps": 4, **training},
            "lora": {"r": 8},
        }
    )


def read_rows(folder: Path, config: TrainingConfig) -> TrainingRows:
    data = write_lines(folder / "train.jsonl", make_lines(30))
    return read_training_rows(
        load_tokenizer(pretrained_llama()),
        training_data=data,
        holdout=None,
        config=config,
        report=RecordingReporter(),
    )


def load_base(rows: TrainingRows, config: TrainingConfig) -> tuple[PreTrainedModel, Precision]:
    precision = choose_precision(config.training.dtype)
    return load_for_training(pretrained_llama(), rows, config, precision), precision


def state_of(base: PreTrainedModel) -> dict[str, Any]:
    """Everything of a base that a trial could have changed."""
    return {
        "weights": {name: tensor.clone() for name, tensor in base.state_dict().items()},
        "needs_gradient": [parameter.requires_grad for parameter in base.parameters()],
        "gradients": [parameter.grad for parameter in base.parameters()],
        "modules": [(name, type(module), module.training) for name, module in base.named_modules()],
        "hooks": [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in base.modules()],
        "checkpointing": [getattr(module, "gradient_checkpointing", None) for module in base.modules()],
        "attributes": sorted(vars(base)),
        "random": torch.get_rng_state(),
    }


def is_same_state(left: dict[str, Any], right: dict[str, Any]) -> bool:
    weights = left["weights"].keys() == right["weights"].keys() and all(
        torch.equal(tensor, right["weights"][name]) for name, tensor in left["weights"].items()
    )
    rest = all(left[name] == right[name] for name in left if name not in ("weights", "random"))
    return weights and rest and torch.equal(left["random"], right["random"])
