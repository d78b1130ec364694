"""What the name of a tensor in a LoRA file says, and the base model's parameter that it belongs to.

The names are those that peft 0.2 to 0.21 writes (`utils/save_and_load.py`). Standard library only.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from registry.artifacts.base_model import BaseModelSummary, BaseTensor

PREFIX = "base_model.model."
# What transformers puts before a decoder's names in the model with a head; checkpoints of the bare decoder
# ("gpt2" for example) lack it, and transformers adds it when loading.
_BODY_PREFIXES = ("model.", "transformer.", "gpt_neox.")
# transformers 5 names modules unlike the checkpoint for these types (conversion_mapping.py).
_RENAMED = {"mixtral": (".mlp.", ".block_sparse_moe."), "minimax": (".mlp.", ".block_sparse_moe.")}
_NAMES = (
    (r"(?P<module>.+?)(?P<nesting>(\.base_layer)*)\.lora_A\.weight", "lora-a"),
    (r"(?P<module>.+?)(?P<nesting>(\.base_layer)*)\.lora_B\.weight", "lora-b"),
    (r"(?P<module>.+)\.lora_B\.bias", "lora-b-bias"),
    (r"(?P<module>.+)\.lora_embedding_A", "embedding-a"),
    (r"(?P<module>.+)\.lora_embedding_B", "embedding-b"),
    (r"(?P<module>.+)\.lora_magnitude_vector(\.weight)?", "magnitude"),
    (r"(?P<module>.+)\.token_adapter\.trainable_tokens_delta", "token-rows"),
    (r"(?P<module>.+)\.token_adapter\.base_layer\.(?P<parameter>weight)", "base-layer"),
    (r"(?P<module>.+)\.base_layer\.(?P<parameter>weight|bias)", "base-layer"),
    (r"(?P<module>.+)\.modules_to_save\.(?P<parameter>weight|bias)", "saved-copy"),
    (r"(?P<module>.+)\.original_module\.(?P<parameter>weight|bias)", "frozen-copy"),
)


class TensorRole(StrEnum):
    """What a tensor of a LoRA file is.

    LORA_A and LORA_B are the halves of a pair, EMBEDDING_A and EMBEDDING_B those of an embedding's; a whole
    parameter has either the base model's own name (WHOLE) or that of the layer under a LoRA (BASE_LAYER). The
    copies are what `save_embedding_layers` writes beside a module of modules_to_save.
    """

    LORA_A = "lora-a"
    LORA_B = "lora-b"
    LORA_B_BIAS = "lora-b-bias"
    EMBEDDING_A = "embedding-a"
    EMBEDDING_B = "embedding-b"
    MAGNITUDE = "magnitude"
    TOKEN_ROWS = "token-rows"  # noqa: S105 (not a password)
    BASE_LAYER = "base-layer"
    SAVED_COPY = "saved-copy"
    FROZEN_COPY = "frozen-copy"
    WHOLE = "whole"


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorName:
    """A tensor's name, taken apart.

    Attributes:
        role: what it is.
        module: dotted name of the module in the model.
        parameter: "weight", "bias", …: the parameter meant, for whole parameters and their copies.
        depth: how many wrappers lie around it; above 0 only where several parameters of one module are
            adapted (peft nests a wrapper for each).
    """

    role: TensorRole
    module: str
    parameter: str = "weight"
    depth: int = 0


def parse_tensor_name(name: str) -> TensorName:
    """Take apart a tensor's name, without the prefix `PREFIX`; a name of no other kind is a whole
    parameter.
    """
    for pattern, role in _NAMES:
        match = re.fullmatch(pattern, name)
        if match is not None:
            groups = match.groupdict()
            return TensorName(
                role=TensorRole(role),
                module=match["module"],
                parameter=groups.get("parameter") or "weight",
                depth=(groups.get("nesting") or "").count(".base_layer"),
            )
    module, _, parameter = name.rpartition(".")
    return TensorName(role=TensorRole.WHOLE, module=module, parameter=parameter)


class BaseNames:
    """Finds the tensor in the base model's files for a parameter's name in the loaded model.

    Args:
        base: the base model.
    """

    def __init__(self, base: BaseModelSummary) -> None:
        """Look at which prefixes the files use."""
        self._tensors = base.tensors
        self._missing_prefixes = tuple(
            prefix for prefix in _BODY_PREFIXES if not any(name.startswith(prefix) for name in base.tensors)
        )
        self._renaming = _RENAMED.get(base.model_type)

    def find(self, name: str) -> str | None:
        """Return the name in the files, None when there is none."""
        for candidate in self._candidates(name):
            if candidate in self._tensors:
                return candidate
        return None

    def get(self, name: str) -> BaseTensor | None:
        """Return the tensor, None when there is none."""
        found = self.find(name)
        return None if found is None else self._tensors[found]

    def list_experts(self, module: str, projection: str) -> list[str]:
        """Return the tensors of a projection of all experts, by number, for files that hold experts
        singly.
        """
        names: list[str] = []
        while (found := self.find(f"{module}.{len(names)}.{projection}.weight")) is not None:
            names.append(found)
        return names

    @property
    def has_body_prefix(self) -> bool:
        """Whether the files use the prefix of the model with a head; a bare decoder's do not."""
        return len(self._missing_prefixes) < len(_BODY_PREFIXES)

    def _candidates(self, name: str) -> Iterator[str]:
        yield name
        if self._renaming is not None:
            yield name.replace(*self._renaming)
        for prefix in self._missing_prefixes:
            if name.startswith(prefix):
                yield name.removeprefix(prefix)
