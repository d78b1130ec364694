"""Matches the pairs of target_parameters: bare parameters, in practice the fused experts of a mixture.

A parameter is [experts, p, q]. peft before 0.19 stores A as [experts * rank, p] and B as [q, rank * experts];
from 0.19 on, unless the class says that it is transposed, A is [experts * rank, q] and B [p, rank * experts]
(tuners/lora/layer.py, ParamWrapper). Shapes tell the two apart unless p = q. In the files of several base
models the experts are stored singly; transformers fuses them when loading (conversion_mapping.py). Standard
library only.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from registry.artifacts.adapter_changes import AdapterModule, TensorChange
from registry.artifacts.adapter_config import AdapterConfig
from registry.artifacts.adapter_names import BaseNames
from registry.artifacts.adapter_pairs import (
    GATHER,
    OTHER_BASE,
    check_base_dtype,
    check_halves,
    check_rank_field,
    compute_scaling,
)
from registry.artifacts.base_model import BaseModelSummary
from registry.artifacts.findings import Finding, shown, shown_list
from registry.artifacts.module_patterns import leaf_name
from registry.artifacts.safetensors_header import TensorInfo

# Classes with is_transposed in transformers 5; with earlier ones peft treats them like the others.
_TRANSPOSED_MODEL_TYPES = frozenset({"gpt_oss", "aria", "aria_text", "openai_privacy_filter"})
# In the order of definition in transformers' classes: the last one is the outermost wrapper.
_DEFINITION_ORDER = ("weight", "bias", "gate_up_proj", "gate_up_proj_bias", "down_proj", "down_proj_bias")
# A fused parameter's parts in files that hold experts singly, along its output rows.
_SINGLE_PARTS = {
    "gate_up_proj": (("gate_proj", "up_proj"), ("w1", "w3")),
    "down_proj": (("down_proj",), ("w2",)),
}
_LAYOUT_CHANGED = (0, 19)

Halves = tuple[TensorInfo | None, TensorInfo | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Parameter:
    """A parameter of the loaded model.

    Attributes:
        name: in the model.
        shape: in the model: [experts, p, q] or [d_out, d_in].
        parts: the files' tensors, by expert and then along the output rows; one tensor when stored fused.
        is_single: whether the files hold the experts singly.
    """

    name: str
    shape: tuple[int, ...]
    parts: tuple[tuple[TensorInfo, ...], ...]
    is_single: bool


class ParameterMatcher:
    """Matches the wrappers' pairs on a module with its parameters.

    Args:
        config: of the adapter.
        base: the base model.
        names: of its tensors.
    """

    def __init__(self, config: AdapterConfig, base: BaseModelSummary, names: BaseNames) -> None:
        """Keep the three."""
        self._config = config
        self._base = base
        self._names = names

    def list_targets(self, module: str) -> list[str]:
        """Return the base's parameters of a module that target_parameters means, in the order of
        definition.
        """
        leaves = {
            leaf_name(target)
            for target in self._config.target_parameters
            if f".{module}.{leaf_name(target)}".endswith(f".{target}")
        }
        present = [leaf for leaf in leaves if self._find(module, leaf) is not None]
        return sorted(present, key=lambda leaf: (_order(leaf), leaf))

    def match(
        self, module: str, halves_by_depth: Mapping[int, Halves]
    ) -> tuple[list[AdapterModule], list[TensorChange], list[Finding]]:
        """Match the pairs of one module.

        Args:
            module: dotted name in the model.
            halves_by_depth: lora_A and lora_B of each wrapper, 0 being the outermost.
        """
        targets = self.list_targets(module)
        findings = list(self._check_nesting(module, targets, halves_by_depth))
        if findings:
            return [], [], findings
        modules: list[AdapterModule] = []
        changes: list[TensorChange] = []
        for depth, (a, b) in sorted(halves_by_depth.items()):
            parameter = self._find(module, targets[len(targets) - 1 - depth])
            faults = list(check_halves(module, a, b))
            if faults or a is None or b is None or parameter is None:
                findings += faults
                continue
            adapted, faults = self._make_module(module, parameter, a, b)
            findings += faults
            if adapted is not None:
                modules.append(adapted)
                changes += _make_changes(parameter, adapted)
        return modules, changes, findings

    def _check_nesting(
        self, module: str, targets: Sequence[str], halves_by_depth: Mapping[int, Halves]
    ) -> Iterator[Finding]:
        where = shown(module)
        if not targets:
            message = "The base model has no such parameter among those that target_parameters means."
            yield Finding.error("module-unknown", message, where=where, remedy=OTHER_BASE)
        elif sorted(halves_by_depth) != list(range(len(targets))):
            message = (
                f"target_parameters means {shown_list(targets)} here, but there are tensors for "
                f"{len(halves_by_depth)} of them; which ones cannot be told."
            )
            yield Finding.error("tensor-missing", message, where=where, remedy=GATHER)
        elif len(targets) > 1 and not set(targets) <= set(_DEFINITION_ORDER):
            message = f"Which tensors belong to which of {shown_list(targets)} cannot be told."
            remedy = "Adapt one parameter of the module at a time."
            yield Finding.error("adapter-target-parameters", message, where=where, remedy=remedy)

    def _find(self, module: str, leaf: str) -> _Parameter | None:
        name = f"{module}.{leaf}"
        fused = self._names.get(name)
        if fused is not None:
            return _Parameter(name=name, shape=fused.info.shape, parts=((fused.info,),), is_single=False)
        for projections in _SINGLE_PARTS.get(leaf, ()):
            experts = [self._names.list_experts(module, projection) for projection in projections]
            if experts[0] and len({len(names) for names in experts}) == 1:
                parts = tuple(
                    tuple(self._base.tensors[found].info for found in names)
                    for names in zip(*experts, strict=True)
                )
                shapes = {tuple(part.shape for part in expert) for expert in parts}
                if len(shapes) != 1 or any(len(part.shape) != 2 for part in parts[0]):
                    return None
                d_out = sum(part.shape[0] for part in parts[0])
                shape = (len(parts), d_out, parts[0][0].shape[1])
                return _Parameter(name=name, shape=shape, parts=parts, is_single=True)
        return None

    def _make_module(
        self, module: str, parameter: _Parameter, a: TensorInfo, b: TensorInfo
    ) -> tuple[AdapterModule | None, list[Finding]]:
        where = shown(parameter.name)
        num_experts = parameter.shape[0] if len(parameter.shape) == 3 else 1
        findings = [
            fault for expert in parameter.parts for part in expert for fault in check_base_dtype(part, where)
        ]
        orientations = self._orientations(parameter, a, b)
        if a.shape[0] % num_experts or not orientations:
            message = (
                f"lora_A {list(a.shape)} and lora_B {list(b.shape)} do not fit the base model's parameter of "
                "shape "
                f"{list(parameter.shape)}."
            )
            findings.append(Finding.error("shape-mismatch", message, where=where, remedy=OTHER_BASE))
            return None, findings
        if len(orientations) > 1:
            message = (
                f"The parameter is square ({list(parameter.shape)}), and peft_version does not say whether "
                "its delta "
                "is transposed (peft changed that with 0.19, and for some classes with transformers 5)."
            )
            remedy = "Save the adapter with a released peft from 0.19 on, or merge it where it was trained."
            findings.append(Finding.error("adapter-target-parameters", message, where=where, remedy=remedy))
        rank = a.shape[0] // num_experts
        findings += check_rank_field(self._config, parameter.name, rank)
        if findings:
            return None, findings
        alpha, scaling = compute_scaling(self._config, parameter.name, rank)
        return AdapterModule(
            module=module,
            base_tensor=parameter.name,
            tensor_a=a.name,
            tensor_b=b.name,
            rank=rank,
            alpha=alpha,
            scaling=scaling,
            is_transposed=orientations[0],
            num_parameters=a.num_elements + b.num_elements,
            num_experts=num_experts,
        ), []

    def _orientations(self, parameter: _Parameter, a: TensorInfo, b: TensorInfo) -> list[bool]:
        """Return whether the delta may be [d_in, d_out] (True) or [d_out, d_in] (False), by shape and
        version.
        """
        rows, columns = parameter.shape[-2:]
        if len(parameter.shape) == 2:
            return [False] if (b.shape[0], a.shape[1]) == (rows, columns) else []
        possible = []
        if (a.shape[1], b.shape[0]) == (rows, columns):
            possible.append(True)
        if (b.shape[0], a.shape[1]) == (rows, columns):
            possible.append(False)
        if len(possible) < 2:
            return possible
        version = _parse_version(self._config.peft_version)
        if version is None or self._base.model_type in _TRANSPOSED_MODEL_TYPES:
            return possible
        return [version < _LAYOUT_CHANGED]


def _make_changes(parameter: _Parameter, module: AdapterModule) -> Iterator[TensorChange]:
    if not parameter.is_single:
        info = parameter.parts[0][0]
        yield TensorChange(target=info.name, source=info.name, shape=info.shape, pair=module)
        return
    for expert, parts in enumerate(parameter.parts):
        begin = 0
        for part in parts:
            yield TensorChange(
                target=part.name,
                source=part.name,
                shape=part.shape,
                pair=module,
                expert=expert,
                delta_begin=begin,
            )
            begin += part.shape[0]


def _order(leaf: str) -> int:
    return _DEFINITION_ORDER.index(leaf) if leaf in _DEFINITION_ORDER else len(_DEFINITION_ORDER)


def _parse_version(text: str | None) -> tuple[int, int] | None:
    """Return (major, minor) of a released version; (0, 0) for none, since peft states it from 0.18 on."""
    if text is None:
        return (0, 0)
    match = re.fullmatch(r"(\d+)\.(\d+)(\.\d+)*", text)
    return None if match is None else (int(match[1]), int(match[2]))
