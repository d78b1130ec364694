"""A model's folder, opened as far as prompts need it: its bytes have a digest, its chat template is found."""

from dataclasses import dataclass
from pathlib import Path

from evaluation.engine.backends.tokenizer import load_tokenizer
from evaluation.engine.examples import Message
from evaluation.engine.prompts import ChatFormat, build_chat_format, render_prompt
from registry.artifacts.digests import hash_stream
from registry.artifacts.findings import shown
from registry.artifacts.manifest import ArtifactFile, ArtifactManifest
from workers.job.errors import StepRefused

_PROBE = (Message("user", "probe"),)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalModel:
    """A base or merged model on this machine.

    Attributes:
        folder: Where it lies.
        name: The folder's name, for people.
        digest: Of its files; the digest of a registered base model when the folder holds that and no more.
        chat: Tokenizer, chat template and stop tokens.
    """

    folder: Path
    name: str
    digest: str
    chat: ChatFormat


def open_model(folder: Path) -> LocalModel:
    """Reads a model's folder; takes as long as reading its weights once.

    Raises:
        StepRefused: it is no model with weights as safetensors (``model-unusable``).
        PromptError: no tokenizer can be loaded, or no prompt rendered by its chat template.
    """
    _require_safetensors(folder)
    chat = build_chat_format(load_tokenizer(folder))
    # A template that refuses everything, or doubles the first token, is known before an engine starts.
    render_prompt(chat, _PROBE)
    return LocalModel(
        folder=folder, name=folder.absolute().name, digest=digest_model_files(folder), chat=chat
    )


def digest_model_files(folder: Path) -> str:
    """Returns the digest of the files that lie in a model's folder, as of an artifact.

    Hidden files and folders below it do not count: downloads leave them behind, and no engine reads them.
    """
    files = []
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or not path.is_file():
            continue
        with path.open("rb") as file:
            digest = hash_stream(file)
        files.append(ArtifactFile(path.name, digest.size_bytes, digest.sha256))
    return ArtifactManifest.of(files).digest


def _require_safetensors(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise StepRefused("model-unusable", f"{shown(folder)} has no config.json; is it a model's folder?")
    # Engines would fall back on pickled weights, which run code when they are loaded.
    if not any(folder.glob("*.safetensors")):
        message = (
            f"{shown(folder)} has no .safetensors weights. Save the model again with "
            "save_pretrained(folder) of a current transformers, which writes them."
        )
        raise StepRefused("model-unusable", message)
