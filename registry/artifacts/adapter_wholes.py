"""Judges the whole parameters, biases and embedding rows in a LoRA file: announced, complete, of the right
shape.

A whole parameter is accepted where the configuration says that it was trained (modules_to_save, bias), or
where it is an embedding that peft saved along (save_embedding_layers). Everything else is refused: peft
would load it over the base's weight without a word. Standard library only.
"""

from collections.abc import Iterator, Mapping, Set

from registry.artifacts.adapter_config import AdapterConfig
from registry.artifacts.adapter_names import BaseNames, TensorName, TensorRole
from registry.artifacts.adapter_pairs import (
    GATHER,
    OTHER_BASE,
    OWN_CONFIG,
    SAVE_AGAIN,
    check_base_dtype,
    check_dtype,
)
from registry.artifacts.adapter_serving import SAVE_WITHOUT_EMBEDDINGS
from registry.artifacts.base_model import BaseModelSummary
from registry.artifacts.findings import Finding, shown, shown_list
from registry.artifacts.module_patterns import EMBEDDING_NAMES, HEAD_NAMES, is_target, leaf_name
from registry.artifacts.safetensors_header import TensorInfo


class WholeChecker:
    """Judges tensors that replace parameters of the base.

    Args:
        config: of the adapter, with patterns that passed `find_pattern_fault`.
        base: the base model.
        names: of its tensors.
    """

    def __init__(self, config: AdapterConfig, base: BaseModelSummary, names: BaseNames) -> None:
        """Keep the three."""
        self._config = config
        self._base = base
        self._names = names

    def is_trained(self, name: TensorName) -> bool:
        """Return whether the configuration says that the parameter was trained as a whole."""
        if name.role is TensorRole.WHOLE and self._is_module_to_save(name.module):
            return True
        if name.parameter != "bias":
            return False
        is_adapted = name.role is TensorRole.BASE_LAYER
        return self._config.bias == "all" or (self._config.bias == "lora_only" and is_adapted)

    def check(self, name: TensorName, tensor: TensorInfo) -> Iterator[Finding]:
        """Check one whole parameter, WHOLE or BASE_LAYER."""
        where = shown(tensor.name)
        parameter = f"{name.module}.{name.parameter}"
        base_tensor = self._names.get(parameter)
        is_tied_head = base_tensor is None and self._base.is_tied and _is_head(name)
        if base_tensor is None and not is_tied_head:
            yield self._explain_unknown(name, where)
            return
        if not self.is_trained(name) and not _is_embedding_weight(name):
            yield _refuse_unannounced(name, where)
            return
        yield from check_dtype("The tensor", tensor, where)
        if base_tensor is None:
            return  # the shape is compared with the embedding's, where the two are brought together
        yield from check_base_dtype(base_tensor.info, where)
        expected = base_tensor.info.shape
        is_resized = _is_embedding_weight(name) and len(expected) == 2 and tensor.shape[1:] == expected[1:]
        if tensor.shape != expected and not (is_resized and tensor.num_elements):
            message = (
                f"The tensor replaces one of shape {list(expected)} in the base model, but has shape "
                f"{list(tensor.shape)}."
            )
            yield Finding.error("shape-mismatch", message, where=where, remedy=OTHER_BASE)

    def check_rows(
        self, module: str, tensor: TensorInfo, num_rows: int | None, columns: int | None
    ) -> Iterator[Finding]:
        """Check the rows of trainable_token_indices for one embedding.

        Args:
            module: dotted name in the model.
            tensor: the rows.
            num_rows: of the (possibly resized) embedding; None when the base has none of this name.
            columns: likewise.
        """
        where = shown(tensor.name)
        indices = self.token_indices(module)
        if indices is None:
            message = "The tensor holds rows of an embedding, but trainable_token_indices does not say which."
            yield Finding.error("adapter-trainable-tokens", message, where=where, remedy=OWN_CONFIG)
            return
        if num_rows is None or columns is None:
            message = "The base model has no embedding of this name."
            yield Finding.error("module-unknown", message, where=where, remedy=OTHER_BASE)
            return
        yield from check_dtype("The tensor", tensor, where)
        if tensor.shape != (len(indices), columns):
            message = (
                f"The rows have shape {list(tensor.shape)}, expected is [{len(indices)}, {columns}] for "
                f"{len(indices)} token numbers."
            )
            yield Finding.error("shape-mismatch", message, where=where, remedy=OWN_CONFIG)
        beyond = [index for index in indices if index >= num_rows]
        if beyond:
            message = (
                f"trainable_token_indices names rows that the embedding has not ({shown_list(beyond)} of "
                f"{num_rows})."
            )
            yield Finding.error("token-index-out-of-range", message, where=where, remedy=OTHER_BASE)

    def token_indices(self, module: str) -> tuple[int, ...] | None:
        """Return the rows that the configuration names for an embedding; None when it names none."""
        for name, indices in self._config.trainable_token_indices.items():
            if name is None and leaf_name(module) in EMBEDDING_NAMES:
                return indices
            if name is not None and f".{module}".endswith(f".{name}"):
                return indices
        if (
            self._base.is_tied
            and leaf_name(module) in HEAD_NAMES
            and len(self._config.trainable_token_indices) == 1
        ):
            return next(iter(self._config.trainable_token_indices.values()))  # tied to the embedding by peft
        return None

    def check_complete(self, wholes: Set[str], rows: Mapping[str, TensorInfo]) -> Iterator[Finding]:
        """Look for what the configuration announces and the file lacks.

        Args:
            wholes: names of the parameters in the base's files (in the model for a tied output layer).
            rows: by module.
        """
        yield from self._check_modules_to_save(wholes)
        yield from self._check_biases(wholes)
        for name in self._config.trainable_token_indices:
            meant = [module for module in rows if name is None or f".{module}".endswith(f".{name}")]
            is_tied_head = (
                self._base.is_tied and bool(rows) and name is not None and leaf_name(name) in HEAD_NAMES
            )
            if not meant and not is_tied_head:
                message = (
                    f"trainable_token_indices names rows of {shown(name or 'the embedding')}, which are "
                    "missing."
                )
                yield Finding.error("tensor-missing", message, remedy=GATHER)

    def _check_modules_to_save(self, wholes: Set[str]) -> Iterator[Finding]:
        for target in self._config.modules_to_save:
            expected = [name for name in self._base.tensors if _ends_inside(name.rpartition(".")[0], target)]
            missing = sorted(name for name in expected if name not in wholes)
            is_tied_head = not expected and self._base.is_tied and leaf_name(target) in HEAD_NAMES
            if is_tied_head and not any(_ends_inside(name.rpartition(".")[0], target) for name in wholes):
                missing = [f"{target}.weight"]
            if missing:
                message = (
                    f"modules_to_save names {shown(target)}, but {len(missing)} of its tensors are not in "
                    "the file: "
                    f"{shown_list(missing)}."
                )
                yield Finding.error(
                    "tensor-missing", message, where="adapter_config.json: modules_to_save", remedy=GATHER
                )

    def _check_biases(self, wholes: Set[str]) -> Iterator[Finding]:
        if self._config.bias == "none":
            return
        expected = [
            name
            for name, tensor in self._base.tensors.items()
            if name.endswith(".bias") and len(tensor.info.shape) == 1
        ]
        if self._config.bias == "lora_only":
            expected = [name for name in expected if self._config.target_modules and self._is_adapted(name)]
        missing = sorted(name for name in expected if name not in wholes)
        if missing:
            message = (
                f"bias is {self._config.bias!r}, but {len(missing)} trained biases are not in the file: "
                f"{shown_list(missing)}."
            )
            remedy = "Save it again with a current peft; early versions left these biases out."
            yield Finding.error("tensor-missing", message, where="adapter_config.json: bias", remedy=remedy)

    def _is_adapted(self, bias: str) -> bool:
        return is_target(self._config, bias.removesuffix(".bias"))

    def _is_module_to_save(self, module: str) -> bool:
        return any(_ends_inside(module, target) for target in self._config.modules_to_save)

    def _explain_unknown(self, name: TensorName, where: str) -> Finding:
        if name.parameter == "bias":
            message = "The tensor is a bias that the base model has not."
            return Finding.error("adapter-bias", message, where=where, remedy=OTHER_BASE)
        message = (
            "The tensor is no half of a LoRA pair and is in no base model's weight; peft would pass over it "
            "silently."
        )
        return Finding.error("tensor-unexpected", message, where=where, remedy=SAVE_AGAIN)


def is_embedding_module(module: str) -> bool:
    """Return whether a module is an input embedding or an output layer, by its name."""
    return leaf_name(module) in EMBEDDING_NAMES | HEAD_NAMES


def _is_embedding_weight(name: TensorName) -> bool:
    return name.parameter == "weight" and is_embedding_module(name.module)


def _is_head(name: TensorName) -> bool:
    return name.parameter == "weight" and leaf_name(name.module) in HEAD_NAMES


def _ends_inside(module: str, target: str) -> bool:
    """Return whether a module, or one around it, ends with a name of modules_to_save, as peft matches it."""
    parts = module.split(".")
    return any(".".join(parts[:end]).endswith(target) for end in range(1, len(parts) + 1))


def _refuse_unannounced(name: TensorName, where: str) -> Finding:
    if name.parameter == "bias":
        message = (
            "The tensor is a bias of the base model that was trained as well, which the configuration does "
            "not say."
        )
        return Finding.error("adapter-bias", message, where=where, remedy=OWN_CONFIG)
    message = "The tensor replaces a whole weight of the base model, which the configuration does not say."
    return Finding.error(
        "adapter-full-weights", message, where=where, remedy=f"{OWN_CONFIG} {SAVE_WITHOUT_EMBEDDINGS}"
    )
