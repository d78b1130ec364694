"""What training tools leave beside an adapter, by name, and why it is not uploaded.

An allow list decides what belongs to an adapter; the patterns here only give the reason for what is left out.
Standard library only.
"""

import re
from fnmatch import fnmatchcase

# Files that belong to an adapter: its own two, the tokenizer it was trained with, and papers.
_KEPT_FILES = (
    "adapter_config.json",
    "adapter_model.safetensors",
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "special_tokens_map.json",
    "added_tokens.json",
    "vocab.json",
    "vocab.txt",
    "merges.txt",
    "spiece.model",
    "sentencepiece.bpe.model",
    "chat_template.jinja",
    "chat_template.json",
    "README.md",
    "LICENSE*",
    "NOTICE*",
)

CHECKPOINT_FOLDER = re.compile(r"checkpoint-\d+")

# (pattern on the lower-case name, reason); the first match counts. "name (8).pt" is what browsers make of a
# second download.
_FILE_REASONS = (
    (r"optimizer.*\.(pt|bin|pth|safetensors)", "optimizer state"),
    (r"scheduler.*\.(pt|bin|pth)", "learning-rate scheduler state"),
    (r"scaler.*\.(pt|bin|pth)", "gradient scaler state"),
    (r"rng_state.*\.pth", "random generator state"),
    (r"training_args.*\.bin", "pickled training arguments"),
    (r"trainer_state.*\.json|all_results\.json|train_results\.json|eval_results\.json", "training log"),
    (r".*tfevents.*", "tensorboard events"),
    (r"adapter_model.*\.bin", "pickle beside the safetensors"),
    (
        r"model.*\.safetensors|consolidated.*|pytorch_model.*|.*\.gguf|model.*\.index\.json",
        "full model weights",
    ),
    (
        r"config\.json|generation_config\.json|preprocessor_config\.json|processor_config\.json",
        "full model configuration",
    ),
    (r".*\.(zip|tar|tgz|gz|xz|7z|rar)", "archive"),
    (r".*\.(log|out|err)", "log"),
    (r".*\.(pyc|so|dll|exe|sh|py|ipynb|js)", "code, never run here"),
    (r".*\.(pt|pth|bin|ckpt|pkl|pickle|npy|npz)", "pickle or raw data, never opened"),
    (r"\..*", "hidden file"),
)
_FOLDER_REASONS = (
    (r"checkpoint-\d+", "intermediate checkpoint"),
    (r"global_step\d+", "DeepSpeed state"),
    (r"runs|logs|events|tensorboard|wandb|mlruns|swanlog", "experiment log"),
    (r"__pycache__|\.git|\.cache|\.venv|venv|node_modules|\..*", "tool's own folder"),
)
FULL_MODEL_REASON = "full model weights"
CHECKPOINT_REASON = "intermediate checkpoint"


def is_adapter_file(path: str) -> bool:
    """Return whether a path (relative to the adapter's folder) belongs to an adapter."""
    if path.startswith("additional_chat_templates/"):
        return path.count("/") == 1 and path.endswith(".jinja")
    return "/" not in path and any(fnmatchcase(path, pattern) for pattern in _KEPT_FILES)


def file_reason(name: str) -> str:
    """Return why a file of that name is left out."""
    lowered = name.lower()
    return next(
        (reason for pattern, reason in _FILE_REASONS if re.fullmatch(pattern, lowered)),
        "not part of an adapter",
    )


def folder_reason(name: str) -> str:
    """Return why a folder of that name is left out."""
    lowered = name.lower()
    return next(
        (reason for pattern, reason in _FOLDER_REASONS if re.fullmatch(pattern, lowered)),
        "not part of the adapter",
    )


def is_tool_folder(name: str) -> bool:
    """Return whether no adapter is looked for in a folder of that name."""
    return folder_reason(name) in ("tool's own folder", "experiment log", "DeepSpeed state")
