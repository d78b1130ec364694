"""Matches every tensor of a LoRA file with a parameter of the base model, in both directions, by name and
shape.

peft passes over tensors that it does not expect without a word, and vLLM serves the plain base model when
nothing matches; so here a tensor that has no place, or a place that has half a pair, is an error. Works on
headers: no torch, no values.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from registry.artifacts.adapter_changes import (
    AdapterModule,
    ChangeSet,
    EmbeddingPlan,
    ParameterDraft,
    TensorChange,
    TokenRows,
)
from registry.artifacts.adapter_config import AdapterConfig
from registry.artifacts.adapter_embeddings import EmbeddingPlanner
from registry.artifacts.adapter_names import PREFIX, BaseNames, TensorName, TensorRole, parse_tensor_name
from registry.artifacts.adapter_pairs import GATHER, SAVE_AGAIN, PairChecker
from registry.artifacts.adapter_parameters import Halves, ParameterMatcher
from registry.artifacts.adapter_serving import SAVE_WITHOUT_EMBEDDINGS
from registry.artifacts.adapter_wholes import WholeChecker, is_embedding_module
from registry.artifacts.base_model import BaseModelSummary
from registry.artifacts.findings import Finding, has_errors, shown, shown_list
from registry.artifacts.module_patterns import EMBEDDING_NAMES, is_target, layer_index, leaf_name
from registry.artifacts.safetensors_header import TensorInfo

_WHOLE_ROLES = frozenset({TensorRole.WHOLE, TensorRole.BASE_LAYER})


@dataclass(frozen=True, slots=True)
class AdapterMatch:
    """What the tensors of an adapter change, and what does not fit.

    Attributes:
        changes: complete only when there is no error among `findings`.
        findings: errors, warnings and notices.
    """

    changes: ChangeSet
    findings: tuple[Finding, ...]

    @property
    def modules(self) -> tuple[AdapterModule, ...]:
        """The low-rank pairs, sorted by module."""
        return self.changes.modules


@dataclass(slots=True)
class _Sorted:
    """The tensors of the file by what they are."""

    pairs: dict[str, dict[TensorRole, TensorInfo]] = field(default_factory=dict)
    wrappers: dict[str, dict[int, dict[TensorRole, TensorInfo]]] = field(default_factory=dict)
    wholes: list[tuple[TensorName, TensorInfo]] = field(default_factory=list)
    copies: list[tuple[TensorName, TensorInfo]] = field(default_factory=list)
    rows: dict[str, TensorInfo] = field(default_factory=dict)


def match_adapter_tensors(
    tensors: Mapping[str, TensorInfo], config: AdapterConfig, base: BaseModelSummary
) -> AdapterMatch:
    """Return what the adapter changes and what does not fit.

    Args:
        tensors: of the adapter's header.
        config: its configuration, with patterns that passed `find_pattern_fault`.
        base: the base model chosen at submission.
    """
    if not tensors:
        message = "The file holds no tensor at all, so the adapter would change nothing."
        return AdapterMatch(ChangeSet(), (Finding.error("adapter-empty", message, remedy=GATHER),))
    return _Matching(config, base).run(tensors)


class _Matching:
    """One run of the matching; collects drafts and findings."""

    def __init__(self, config: AdapterConfig, base: BaseModelSummary) -> None:
        self._config = config
        self._base = base
        self._names = BaseNames(base)
        self._embeddings = EmbeddingPlanner(base, self._names)
        self._pairs = PairChecker(config, base, self._names)
        self._parameters = ParameterMatcher(config, base, self._names)
        self._wholes = WholeChecker(config, base, self._names)
        self._drafts: dict[str, ParameterDraft] = {}
        self._modules: list[AdapterModule] = []
        self._changes: list[TensorChange] = []
        self._unused: list[str] = []
        self._equal_pairs: list[tuple[str, str]] = []
        self._findings: list[Finding] = []

    def run(self, tensors: Mapping[str, TensorInfo]) -> AdapterMatch:
        found = self._sort(tensors)
        self._take_wholes(found)
        self._take_copies(found)
        self._take_rows(found)
        self._take_pairs(found)
        self._take_wrappers(found)
        parameters = [f"{name.module}.{name.parameter}" for name, _ in found.wholes]
        wholes = {self._names.find(parameter) or parameter for parameter in parameters}
        self._findings += self._wholes.check_complete(wholes, found.rows)
        self._findings += self._check_coverage({*found.pairs, *found.wrappers})
        if has_errors(self._findings):
            return AdapterMatch(ChangeSet(modules=tuple(self._modules)), tuple(self._findings))
        return self._finish(found)

    def _draft(self, name: str) -> ParameterDraft:
        return self._drafts.setdefault(name, ParameterDraft(name=name))

    def _sort(self, tensors: Mapping[str, TensorInfo]) -> _Sorted:
        found = _Sorted()
        for full_name, tensor in sorted(tensors.items()):
            fault = _check_prefix(full_name)
            if fault is not None:
                self._findings.append(fault)
                continue
            name = parse_tensor_name(full_name.removeprefix(PREFIX))
            if name.role in _WHOLE_ROLES:
                found.wholes.append((name, tensor))
            elif name.role in (TensorRole.SAVED_COPY, TensorRole.FROZEN_COPY):
                found.copies.append((name, tensor))
            elif name.role is TensorRole.TOKEN_ROWS:
                found.rows[name.module] = tensor
            elif name.depth or self._is_wrapped(name):
                found.wrappers.setdefault(name.module, {}).setdefault(name.depth, {})[name.role] = tensor
            else:
                found.pairs.setdefault(name.module, {})[name.role] = tensor
        return found

    def _is_wrapped(self, name: TensorName) -> bool:
        """Return whether the pair is on a bare parameter instead of on a module."""
        return name.role in (TensorRole.LORA_A, TensorRole.LORA_B) and bool(
            self._parameters.list_targets(name.module)
        )

    def _take_wholes(self, found: _Sorted) -> None:
        for name, tensor in found.wholes:
            explained = _explain_other(tensor.name)
            faults = [explained] if explained is not None else list(self._wholes.check(name, tensor))
            self._findings += faults
            if not faults:
                draft = self._draft(f"{name.module}.{name.parameter}")
                if draft.whole is not None:
                    message = f"The file holds two tensors for {shown(draft.name)}."
                    self._findings.append(
                        Finding.error(
                            "tensor-unexpected", message, where=shown(tensor.name), remedy=SAVE_AGAIN
                        )
                    )
                draft.whole, draft.is_trained = tensor, self._wholes.is_trained(name)

    def _take_copies(self, found: _Sorted) -> None:
        """Account for what save_embedding_layers writes beside a module of modules_to_save."""
        for name, tensor in found.copies:
            draft = self._drafts.get(f"{name.module}.{name.parameter}")
            if draft is None or draft.whole is None or not draft.is_trained:
                message = (
                    "The tensor is a copy of a module that replaces one of the base, which itself is not in "
                    "the file."
                )
                self._findings.append(
                    Finding.error(
                        "adapter-modules-to-save", message, where=shown(tensor.name), remedy=SAVE_AGAIN
                    )
                )
            elif tensor.shape != draft.whole.shape or tensor.dtype != draft.whole.dtype:
                message = (
                    f"The copy has shape {list(tensor.shape)}, the module itself {list(draft.whole.shape)}."
                )
                self._findings.append(
                    Finding.error("shape-mismatch", message, where=shown(tensor.name), remedy=SAVE_AGAIN)
                )
            elif name.role is TensorRole.FROZEN_COPY:
                self._unused.append(tensor.name)
            else:
                self._equal_pairs.append((draft.whole.name, tensor.name))

    def _take_rows(self, found: _Sorted) -> None:
        for module, tensor in found.rows.items():
            parameter = f"{module}.weight"
            shape = self._embeddings.shape(parameter, self._drafts) if is_embedding_module(module) else None
            num_rows, columns = shape if shape is not None and len(shape) == 2 else (None, None)
            faults = list(self._wholes.check_rows(module, tensor, num_rows, columns))
            self._findings += faults
            indices = self._wholes.token_indices(module)
            if not faults and indices is not None:
                self._draft(parameter).rows = TokenRows(tensor=tensor.name, indices=indices)

    def _take_pairs(self, found: _Sorted) -> None:
        for module, roles in sorted(found.pairs.items()):
            parameter = f"{module}.weight"
            adapted, faults = self._pairs.check(
                module, roles, self._embeddings.shape(parameter, self._drafts)
            )
            self._findings += faults
            if adapted is not None:
                self._modules.append(adapted)
                self._draft(parameter).pair = adapted
                if (bias := self._pairs.added_bias(adapted, roles)) is not None:
                    self._draft(f"{module}.bias").bias = bias

    def _take_wrappers(self, found: _Sorted) -> None:
        for module, by_depth in sorted(found.wrappers.items()):
            halves: dict[int, Halves] = {
                depth: (roles.get(TensorRole.LORA_A), roles.get(TensorRole.LORA_B))
                for depth, roles in by_depth.items()
            }
            modules, changes, faults = self._parameters.match(module, halves)
            self._modules += modules
            self._changes += changes
            self._findings += faults

    def _finish(self, found: _Sorted) -> AdapterMatch:
        plan, faults = self._embeddings.plan(self._drafts)
        self._findings += faults
        for draft in self._drafts.values():
            is_planned = self._embeddings.is_embedding(draft.name) or self._embeddings.is_head(draft.name)
            if not is_planned:
                self._changes.append(self._plain_change(draft))
        changes = sorted([*self._changes, *plan.changes], key=lambda change: change.target)
        doubled = len(changes) != len({change.target for change in changes})
        if doubled:
            message = "Two parts of the adapter change the same tensor of the base model."
            self._findings.append(Finding.error("tensor-unexpected", message, remedy=SAVE_AGAIN))
        plan = _with_pairs(plan, self._equal_pairs)
        result = ChangeSet(
            modules=tuple(sorted(self._modules, key=lambda module: (module.module, module.base_tensor))),
            changes=tuple(changes),
            unused=tuple(self._unused),
            embedding=plan,
            obstacles=tuple(_list_obstacles(found, plan.vocab_size)),
        )
        return AdapterMatch(result, tuple(self._findings))

    def _plain_change(self, draft: ParameterDraft) -> TensorChange:
        source = self._names.find(draft.name) or draft.name
        shape = draft.whole.shape if draft.whole is not None else self._base.tensors[source].info.shape
        return TensorChange(
            target=source,
            source=source,
            shape=shape,
            whole=None if draft.whole is None else draft.whole.name,
            pair=draft.pair,
            bias=draft.bias,
            rows=draft.rows,
        )

    def _check_coverage(self, adapted: set[str]) -> Iterator[Finding]:
        """Look for base modules that the config means and the file leaves out."""
        if self._config.target_modules is None:
            return
        found = {self._names.find(f"{module}.weight") for module in adapted}
        expected = {module for module in _linear_modules(self._base) if is_target(self._config, module)}
        missing = sorted(module for module in expected if f"{module}.weight" not in found)
        if not missing:
            return
        present = [layer_index(module) or 0 for module in expected if f"{module}.weight" in found]
        deepest = max(present, default=None)
        if deepest is not None and all((layer_index(module) or 0) > deepest for module in missing):
            message = (
                f"The adapter covers the layers up to number {deepest}, the base model has target modules "
                "up to number "
                f"{max(layer_index(module) or 0 for module in missing)}: it was trained on a shallower model."
            )
            remedy = "Choose the base model on which the adapter was trained."
            yield Finding.error("layers-missing", message, remedy=remedy)
            return
        message = (
            f"target_modules means {len(missing)} modules of the base that have no tensors: "
            f"{shown_list(missing)}."
        )
        remedy = "If that is not meant, the file was saved incompletely."
        yield Finding.warning(
            "modules-missing", message, where="adapter_config.json: target_modules", remedy=remedy
        )


def _with_pairs(plan: EmbeddingPlan, pairs: Iterable[tuple[str, str]]) -> EmbeddingPlan:
    return replace(plan, equal_pairs=(*plan.equal_pairs, *pairs))


def _check_prefix(name: str) -> Finding | None:
    where = shown(name)
    if not name.startswith(PREFIX):
        message = f"The name does not start with {PREFIX!r}, as peft writes it."
        return Finding.error("tensor-prefix-missing", message, where=where, remedy=SAVE_AGAIN)
    if name.removeprefix(PREFIX).startswith(PREFIX):
        message = "The name has peft's prefix twice: the adapter was put on a model that already had one."
        remedy = "Merge the first adapter into the base and register that, or train once on the plain base."
        return Finding.error("adapter-double-wrapped", message, where=where, remedy=remedy)
    return None


def _explain_other(name: str) -> Finding | None:
    """Name the tensors of variants that are refused, and names that still hold the adapter's own."""
    where = shown(name)
    rest = name.removeprefix(PREFIX)
    if re.fullmatch(r".*\.lora_diag.*", rest):
        message = "The tensor is a KaSA diagonal, which is not merged."
        return Finding.error(
            "adapter-kasa", message, where=where, remedy="Train a plain LoRA and submit that."
        )
    if re.search(
        r"\.(lora_[AB]|lora_embedding_[AB]|lora_magnitude_vector|trainable_tokens_delta|modules_to_save)\.",
        rest,
    ):
        message = "The name still holds the adapter's name; peft leaves it out when it saves."
        return Finding.error("tensor-adapter-name", message, where=where, remedy=SAVE_AGAIN)
    if ".lora_" in rest:
        message = "The tensor belongs to a kind of LoRA that is not known, and so is not merged."
        return Finding.error(
            "tensor-unexpected", message, where=where, remedy="Train a plain LoRA and submit that."
        )
    return None


def _list_obstacles(found: _Sorted, vocab_size: int | None) -> Iterator[str]:
    """Say what in the tensors keeps vLLM from serving the adapter form, beside what the configuration
    says.
    """
    embeddings = [tensor.name for name, tensor in found.wholes if is_embedding_module(name.module)]
    if vocab_size is not None:
        yield f"the vocabulary was resized to {vocab_size} rows, which vLLM takes from the base"
    elif embeddings:
        yield f"it carries whole embeddings that vLLM leaves out; {SAVE_WITHOUT_EMBEDDINGS}"


def _linear_modules(base: BaseModelSummary) -> Iterator[str]:
    for name, tensor in base.tensors.items():
        module = name.removesuffix(".weight")
        if module != name and len(tensor.info.shape) == 2 and leaf_name(module) not in EMBEDDING_NAMES:
            yield module
