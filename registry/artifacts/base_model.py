"""What a base model's folder holds, by its configurations and safetensors headers: no torch, no code run.

A base model that cannot be judged and served safely is refused with every reason: pickle weights, missing or
ambiguous files, weights that do not match their index, code that would have to be run (`auto_map`), quantised
weights.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from registry.artifacts.errors import BaseModelError, SafetensorsError
from registry.artifacts.findings import Finding, has_errors, shown, shown_list
from registry.artifacts.json_files import read_json_object
from registry.artifacts.safetensors_header import TensorInfo, read_header

SINGLE_WEIGHTS = "model.safetensors"
WEIGHTS_INDEX = "model.safetensors.index.json"
PICKLE_SUFFIXES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
_TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt")
_DTYPE_NAMES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64"}
_CONVERT = (
    "Save it again with model.save_pretrained(folder) of a current transformers, which writes safetensors."
)


@dataclass(frozen=True, slots=True)
class BaseTensor:
    """A tensor of the base model and the file it is in (relative to the model's folder)."""

    info: TensorInfo
    shard: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BaseModelSummary:
    """A base model as its files describe it.

    Attributes:
        architectures: class names of config.json, for example ("LlamaForCausalLM",).
        model_type: of config.json, for example "llama"; "" when it is not stated.
        dtype: the data type of most parameters, in torch's words ("bfloat16").
        num_parameters: elements of all tensors in the files; a tied head that is not stored is not counted.
        size_bytes: length of the weight files together.
        is_tied: whether input and output embeddings are one matrix.
        num_layers: num_hidden_layers; None when not stated.
        hidden_size: None when not stated.
        vocab_size: None when not stated.
        max_position_embeddings: longest sequence in tokens; None when not stated.
        tokenizer_files: names of the tokenizer's files.
        chat_template_sha256: sha256 of the template's text in UTF-8; None when there is no template.
        shards: weight files in order.
        tensors: by name.
        findings: warnings and infos; never an error.
    """

    architectures: tuple[str, ...]
    model_type: str
    dtype: str
    num_parameters: int
    size_bytes: int
    is_tied: bool
    num_layers: int | None
    hidden_size: int | None
    vocab_size: int | None
    max_position_embeddings: int | None
    tokenizer_files: tuple[str, ...]
    chat_template_sha256: str | None
    shards: tuple[str, ...]
    tensors: Mapping[str, BaseTensor]
    findings: tuple[Finding, ...] = ()

    @property
    def architecture(self) -> str:
        """The first architecture."""
        return self.architectures[0]

    def to_json(self) -> dict[str, Any]:
        """Return everything but the single tensors, as JSON."""
        skipped = {"tensors", "findings"}
        result = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in skipped}
        lists = {name: list(value) for name, value in result.items() if isinstance(value, tuple)}
        return {
            **result,
            **lists,
            "architecture": self.architecture,
            "num_tensors": len(self.tensors),
            "findings": [finding.to_json() for finding in self.findings],
        }


def read_base_model(folder: Path) -> BaseModelSummary:
    """Read and check a base model's folder.

    Raises:
        BaseModelError: the folder is no usable base model; `details` holds every finding, warnings included.
    """
    findings: list[Finding] = []
    config = read_json_object(folder / "config.json", findings, code="base-config", is_required=True)
    tokenizer_config = read_json_object(
        folder / "tokenizer_config.json", findings, code="base-tokenizer-config"
    )
    _check_config(config, tokenizer_config, findings)
    if (folder / "adapter_config.json").is_file():
        message = (
            "An adapter_config.json lies beside the model; transformers would put that adapter on it again."
        )
        remedy = "Remove adapter files from the folder."
        findings.append(
            Finding.error("base-has-adapter", message, where="adapter_config.json", remedy=remedy)
        )
    tensors, shards = _read_weights(folder, findings)
    tokenizer_files = tuple(name for name in _TOKENIZER_FILES if (folder / name).is_file())
    if not tokenizer_files:
        message = f"No tokenizer beside the model: none of {', '.join(_TOKENIZER_FILES)}."
        remedy = "Save it with tokenizer.save_pretrained(folder)."
        findings.append(Finding.error("base-tokenizer-missing", message, remedy=remedy))
    template = read_chat_template(folder, tokenizer_config)
    if template is None:
        message = "The tokenizer has no chat template; conversations cannot be rendered."
        findings.append(Finding.warning("base-chat-template-missing", message, where="tokenizer_config.json"))
    if has_errors(findings):
        first = next(finding for finding in findings if finding.severity == "error")
        raise BaseModelError(f"{folder.name} is not a usable base model: {first.message}", details=findings)
    text_config = _text_config(config)
    return BaseModelSummary(
        architectures=tuple(map(str, config.get("architectures") or ("unknown",))),
        model_type=str(config.get("model_type") or ""),
        dtype=_main_dtype(tensors),
        num_parameters=sum(tensor.info.num_elements for tensor in tensors.values()),
        size_bytes=sum((folder / shard).stat().st_size for shard in shards),
        is_tied=_is_tied(config, tensors),
        num_layers=_count(text_config, "num_hidden_layers", "n_layer"),
        hidden_size=_count(text_config, "hidden_size", "n_embd"),
        vocab_size=_count(text_config, "vocab_size"),
        max_position_embeddings=_count(text_config, "max_position_embeddings", "n_positions"),
        tokenizer_files=tokenizer_files,
        chat_template_sha256=None
        if template is None
        else hashlib.sha256(template.encode("utf-8")).hexdigest(),
        shards=tuple(shards),
        tensors=MappingProxyType(tensors),
        findings=tuple(findings),
    )


def read_chat_template(folder: Path, tokenizer_config: Mapping[str, Any]) -> str | None:
    """Return the chat template; chat_template.jinja counts before tokenizer_config.json, as in transformers.

    None means that there is none. Of several named templates the one called "default" is meant.
    """
    path = folder / "chat_template.jinja"
    if path.is_file():
        return path.read_text(encoding="utf-8", errors="replace")
    template = tokenizer_config.get("chat_template")
    if isinstance(template, list):
        named = {item.get("name"): item.get("template") for item in template if isinstance(item, dict)}
        template = named.get("default")
    return template if isinstance(template, str) else None


def _text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    nested = config.get("text_config")
    return nested if isinstance(nested, dict) else config


def _count(config: Mapping[str, Any], *names: str) -> int | None:
    values = (config.get(name) for name in names)
    return next((value for value in values if isinstance(value, int) and not isinstance(value, bool)), None)


def _main_dtype(tensors: Mapping[str, BaseTensor]) -> str:
    counts: Counter[str] = Counter()
    for tensor in tensors.values():
        counts[tensor.info.dtype] += tensor.info.num_elements
    dtype = counts.most_common(1)[0][0]
    return _DTYPE_NAMES.get(dtype, dtype)


def _is_tied(config: Mapping[str, Any], tensors: Mapping[str, BaseTensor]) -> bool:
    for source in (config, _text_config(config)):
        if isinstance(source.get("tie_word_embeddings"), bool):
            return bool(source["tie_word_embeddings"])
    # Not stated: the classes' defaults differ, but an untied head has to be in the files.
    return not any(name.endswith(("lm_head.weight", "embed_out.weight", "output.weight")) for name in tensors)


def _check_config(
    config: Mapping[str, Any], tokenizer_config: Mapping[str, Any], findings: list[Finding]
) -> None:
    for name, content in (("config.json", config), ("tokenizer_config.json", tokenizer_config)):
        if content.get("auto_map"):
            message = (
                f"{name} has an auto_map: the model needs code of its own (trust_remote_code), which is "
                "never run here."
            )
            remedy = "Use a model whose class is part of transformers, and remove auto_map if it is."
            findings.append(Finding.error("base-remote-code", message, where=name, remedy=remedy))
    if config and not config.get("architectures"):
        message = "config.json names no architecture, so no engine knows which class to load."
        findings.append(
            Finding.error("base-architecture-missing", message, where="config.json", remedy=_CONVERT)
        )
    if config.get("quantization_config"):
        message = "The weights are quantised; an adapter cannot be merged exactly into them."
        remedy = "Register the unquantised model from which this one was made."
        findings.append(Finding.error("base-quantised", message, where="config.json", remedy=remedy))


def _read_weights(folder: Path, findings: list[Finding]) -> tuple[dict[str, BaseTensor], list[str]]:
    names = sorted(path.name for path in folder.iterdir() if path.is_file()) if folder.is_dir() else []
    present = [name for name in names if name.endswith(".safetensors")]
    pickles = [name for name in names if name.endswith(PICKLE_SUFFIXES) and name != "training_args.bin"]
    if (folder / WEIGHTS_INDEX).is_file():
        index = read_json_object(folder / WEIGHTS_INDEX, findings, code="base-index")
        weight_map = _weight_map(index, findings)
        shards = sorted(set(weight_map.values()))
    else:
        weight_map, shards = None, [SINGLE_WEIGHTS]
    if not present:
        findings.append(_no_weights(names, pickles))
        return {}, []
    if pickles:
        message = f"Pickle files lie beside the safetensors and are not used: {shown_list(pickles)}."
        findings.append(
            Finding.warning("base-pickle-beside", message, remedy="Leave them out of the upload.")
        )
    others = sorted(set(present) - set(shards))
    if others:
        # vLLM loads every *.safetensors when there is no index, transformers only model.safetensors.
        message = (
            f"Weight files that belong to no index: {shown_list(others)}. Engines would load different "
            "weights."
        )
        remedy = f"Keep either {SINGLE_WEIGHTS} alone or the files that {WEIGHTS_INDEX} names."
        findings.append(Finding.error("base-weights-ambiguous", message, remedy=remedy))
    return _read_shards(folder, shards, weight_map, findings), shards


def _weight_map(index: Mapping[str, Any], findings: list[Finding]) -> dict[str, str]:
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not all(map(_is_file_name, weight_map.values())):
        message = "weight_map must map tensor names to file names in the same folder."
        findings.append(Finding.error("base-index-invalid", message, where=WEIGHTS_INDEX, remedy=_CONVERT))
        return {}
    return dict(weight_map)


def _is_file_name(value: Any) -> bool:
    return isinstance(value, str) and value not in ("", ".", "..") and Path(value).name == value


def _no_weights(names: list[str], pickles: list[str]) -> Finding:
    if pickles:
        message = (
            f"The weights are pickles ({shown_list(pickles)}), which can run code when loaded; they are "
            "never opened."
        )
        return Finding.error("base-weights-pickle", message, remedy=_CONVERT)
    if any(name.endswith(".gguf") for name in names):
        message = "The weights are GGUF, which is quantised; adapters are merged into safetensors only."
        return Finding.error(
            "base-weights-gguf", message, remedy="Convert it with transformers (gguf_file=…) and save it."
        )
    message = f"No weights: neither {SINGLE_WEIGHTS} nor {WEIGHTS_INDEX} is in the folder."
    return Finding.error("base-weights-missing", message, remedy=_CONVERT)


def _read_shards(
    folder: Path, shards: list[str], weight_map: dict[str, str] | None, findings: list[Finding]
) -> dict[str, BaseTensor]:
    tensors: dict[str, BaseTensor] = {}
    for shard in shards:
        if not (folder / shard).is_file():
            message = "The weight file is missing."
            findings.append(
                Finding.error("base-shard-missing", message, where=shown(shard), remedy="Upload it too.")
            )
            continue
        try:
            header = read_header(folder / shard)
        except SafetensorsError as error:
            findings.append(
                Finding.error(error.code, str(error), where=shown(shard), remedy="Fetch the file again.")
            )
            continue
        for name in sorted(header.tensors.keys() & tensors.keys()):
            message = f"The tensor is in {shown(tensors[name].shard)} and in {shown(shard)}."
            findings.append(
                Finding.error("base-tensor-duplicate", message, where=shown(name), remedy=_CONVERT)
            )
        tensors.update({name: BaseTensor(info, shard) for name, info in header.tensors.items()})
    if weight_map is not None and not has_errors(findings):
        wrong = sorted(
            name
            for name in weight_map.keys() | tensors.keys()
            if name not in tensors or weight_map.get(name) != tensors[name].shard
        )
        if wrong:
            message = f"The index and the files disagree on {len(wrong)} tensor(s): {shown_list(wrong)}."
            findings.append(
                Finding.error("base-index-mismatch", message, where=WEIGHTS_INDEX, remedy=_CONVERT)
            )
    if not tensors and not has_errors(findings):
        findings.append(
            Finding.error("base-weights-empty", "The weight files hold no tensor.", remedy=_CONVERT)
        )
    return tensors
