"""Saving a trained adapter and proving that the files hold what was trained."""

import json
from pathlib import Path

import torch
from peft import PeftModel, get_peft_model_state_dict
from safetensors.torch import load_file

from training.engine.atomic_folder import atomic_folder
from training.engine.errors import TrainingFailed

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"


def save_adapter(model: PeftModel, output: Path) -> None:
    """Write adapter_config.json and adapter_model.safetensors into ``output``, complete or not at all.

    Raises:
        TrainingFailed: ``saved-adapter-differs`` or ``adapter-not-trained``, see `check_saved_adapter`.
        FileExistsError: If ``output`` exists and is not empty.
    """
    with atomic_folder(output) as partial:
        # "auto" would look at the base model, possibly on a hub, to decide whether the embedding was resized.
        model.save_pretrained(partial, safe_serialization=True, save_embedding_layers=False)
        (partial / "README.md").unlink(missing_ok=True)
        _sort_config(partial / CONFIG_FILE)
        check_saved_adapter(model, partial)


def _sort_config(path: Path) -> None:
    """Put target_modules in order: PEFT keeps a set, whose order differs from process to process."""
    config = json.loads(path.read_text(encoding="utf-8"))
    config["target_modules"] = sorted(config["target_modules"])
    path.write_text(json.dumps(config, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def check_saved_adapter(model: PeftModel, folder: Path) -> None:
    """Compare the saved file with the model in memory: key set, shapes, values, and norms above zero.

    Raises:
        TrainingFailed: ``saved-adapter-differs`` when the file is not what is in memory;
            ``adapter-not-trained`` when a lora_B is still zero or a value is not finite.
    """
    expected = get_peft_model_state_dict(model, save_embedding_layers=False)
    saved = load_file(folder / WEIGHTS_FILE)
    differing = sorted(expected.keys() ^ saved.keys())
    differing += [
        name for name in expected.keys() & saved.keys() if not torch.equal(expected[name].cpu(), saved[name])
    ]
    if differing or not saved:
        raise TrainingFailed(
            "saved-adapter-differs",
            f"The saved adapter differs from the trained one in {len(differing)} tensors: "
            f"{', '.join(differing[:3])}.",
        )
    faulty = [
        name
        for name, tensor in saved.items()
        if not bool(tensor.isfinite().all()) or ("lora_B" in name and not bool(tensor.any()))
    ]
    if faulty:
        raise TrainingFailed(
            "adapter-not-trained",
            f"{len(faulty)} tensors of the adapter are zero or not finite after training: "
            f"{', '.join(faulty[:3])}.",
        )
