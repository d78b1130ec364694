"""The fingerprint of a training: everything that decides what comes out of it, under one digest (MISSION G5).

Two runs with one fingerprint were told the same; the machine (kind of processor, number of threads) can still
change the last bits of the weights. No torch here.
"""

import hashlib
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from registry.artifacts.base_model import read_chat_template
from registry.artifacts.digests import digest_json, hash_stream
from registry.artifacts.findings import Finding
from registry.artifacts.json_files import read_json_object
from training.engine.config import TrainingConfig
from training.engine.data.jsonl import list_jsonl_files

LIBRARIES: Final = ("torch", "transformers", "peft", "safetensors", "tokenizers")
"""Libraries that decide tokens, arithmetic or the adapter's files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What a training was made of.

    Attributes:
        training_data: Path of each file inside the input to the sha256 of its bytes.
        holdout: Likewise, of the held-out rows; empty without them. They change no weight, but the numbers
            that are reported.
        base_model: Digest of the base's folder, equal to that of its artifact in the registry.
        chat_template_sha256: Of the template's text in UTF-8; None when the tokenizer has none.
        config: The whole configuration, defaults filled in.
        code_version: Of the training code, such as "train@1".
        libraries: Name to version, Python's own included.
    """

    training_data: Mapping[str, str]
    holdout: Mapping[str, str]
    base_model: str
    chat_template_sha256: str | None
    config: Mapping[str, Any]
    code_version: str
    libraries: Mapping[str, str]

    @property
    def digest(self) -> str:
        """sha256 (64 lowercase hex digits) of the canonical JSON of all parts."""
        return digest_json(self._parts())

    def to_json(self) -> dict[str, Any]:
        """Return all parts and, as ``digest``, the sha256 of their canonical JSON."""
        return {**self._parts(), "digest": self.digest}

    def _parts(self) -> dict[str, Any]:
        return {
            "training_data": dict(self.training_data),
            "holdout": dict(self.holdout),
            "base_model": self.base_model,
            "chat_template_sha256": self.chat_template_sha256,
            "config": dict(self.config),
            "code_version": self.code_version,
            "libraries": dict(self.libraries),
        }


def take_fingerprint(
    *, base_model: Path, training_data: Path, holdout: Path | None, config: TrainingConfig, code_version: str
) -> Fingerprint:
    """Hash the inputs of a training; reads every byte of the base model once.

    Args:
        base_model: Hugging Face folder.
        training_data: JSONL file, or a folder as the trainer reads it.
        holdout: Likewise; None without held-out rows.
        config: Of the run.
        code_version: Of the code that trains.

    Raises:
        DataInvalid: ``data-file-missing`` when an input holds no file.
        OSError: A file cannot be read.
    """
    return Fingerprint(
        training_data=_digest_data(training_data),
        holdout={} if holdout is None else _digest_data(holdout),
        base_model=digest_folder(base_model),
        chat_template_sha256=digest_chat_template(base_model),
        config=config.to_json(),
        code_version=code_version,
        libraries=list_libraries(config.method),
    )


def digest_folder(folder: Path) -> str:
    """Return the digest of a folder's files, as `registry.artifacts.manifest` defines it for an artifact."""
    entries: list[list[str | int]] = []
    for path in sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix()):
        if path.is_file():
            with path.open("rb") as stream:
                content = hash_stream(stream)
            entries.append([path.relative_to(folder).as_posix(), content.size_bytes, content.sha256])
    return digest_json(entries)


def list_libraries(method: str) -> dict[str, str]:
    """Return the versions of Python and of the libraries that a training with this method uses; those that
    are not installed are left out.
    """
    names = (*LIBRARIES, "bitsandbytes") if method == "qlora" else LIBRARIES
    versions = {"python": platform.python_version()}
    for name in names:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _digest_data(path: Path) -> dict[str, str]:
    root = path.parent if path.is_file() else path
    digests: dict[str, str] = {}
    for file in list_jsonl_files(path):
        with file.open("rb") as stream:
            digests[file.relative_to(root).as_posix()] = hash_stream(stream).sha256
    return digests


def digest_chat_template(base_model: Path) -> str | None:
    """Return the sha256 of a base's chat template in UTF-8; None when it has none."""
    ignored: list[Finding] = []  # the tokenizer is judged where it is loaded
    tokenizer_config = read_json_object(
        base_model / "tokenizer_config.json", ignored, code="base-tokenizer-config"
    )
    template = read_chat_template(base_model, tokenizer_config)
    return None if template is None else hashlib.sha256(template.encode("utf-8")).hexdigest()
