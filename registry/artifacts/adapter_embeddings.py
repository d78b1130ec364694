"""Decides what becomes of the input embedding and the output layer: changed, resized, untied or kept one
matrix.

In a tied model the two are one tensor. peft trains them apart as soon as one of them has a pair of its own
or is in modules_to_save, and its merge then writes into the shared tensor; here the output layer gets its
own tensor instead, so that the merged model computes what base + adapter computes. Standard library only.
"""

from collections.abc import Mapping
from dataclasses import replace

from registry.artifacts.adapter_changes import EmbeddingPlan, ParameterDraft, TensorChange
from registry.artifacts.adapter_names import BaseNames
from registry.artifacts.adapter_pairs import OTHER_BASE
from registry.artifacts.base_model import BaseModelSummary
from registry.artifacts.findings import Finding, shown
from registry.artifacts.module_patterns import HEAD_NAMES, leaf_name

_TOKEN_EMBEDDINGS = frozenset({"embed_tokens", "wte", "embed_in", "word_embeddings"})
# vLLM 0.32 computes the logits of these with the embedding, whatever the files hold (gemma2.py, commandr.py,
# cohere2_moe.py).
_ALWAYS_TIED = frozenset({"gemma2", "cohere", "cohere2", "cohere2_moe"})
_HEAD_OF_TYPE = {"gpt_neox": "embed_out.weight"}


class EmbeddingPlanner:
    """Brings together what was found for the two matrices.

    Args:
        base: the base model.
        names: of its tensors.
    """

    def __init__(self, base: BaseModelSummary, names: BaseNames) -> None:
        """Look for the two matrices in the base."""
        self._base = base
        self._names = names
        self._embedding = _shortest(base, _TOKEN_EMBEDDINGS)
        self._stored_head = _shortest(base, HEAD_NAMES)

    def is_embedding(self, parameter: str) -> bool:
        """Return whether a parameter of the model is the input embedding."""
        return self._embedding is not None and self._names.find(parameter) == self._embedding

    def is_head(self, parameter: str) -> bool:
        """Return whether a parameter of the model is the output layer's weight."""
        module, _, name = parameter.rpartition(".")
        return name == "weight" and leaf_name(module) in HEAD_NAMES

    def shape(self, parameter: str, drafts: Mapping[str, ParameterDraft]) -> tuple[int, ...] | None:
        """Return the shape that a parameter has before its pair is added; None when the base lacks it."""
        draft = drafts.get(parameter)
        if draft is not None and draft.whole is not None:
            return draft.whole.shape
        if self._base.is_tied and (self.is_head(parameter) or self.is_embedding(parameter)):
            for other in drafts.values():
                is_other = self.is_head(other.name) or self.is_embedding(other.name)
                if is_other and other.whole is not None and not other.is_trained:
                    return other.whole.shape
            return None if self._embedding is None else self._base.tensors[self._embedding].info.shape
        tensor = self._names.get(parameter)
        return None if tensor is None else tensor.info.shape

    def plan(self, drafts: Mapping[str, ParameterDraft]) -> tuple[EmbeddingPlan, list[Finding]]:
        """Decide, from the drafts of all parameters."""
        embedding = next((draft for draft in drafts.values() if self.is_embedding(draft.name)), None)
        head = next((draft for draft in drafts.values() if self.is_head(draft.name)), None)
        if self._embedding is None or (embedding is None and head is None):
            return EmbeddingPlan(), []
        if not self._base.is_tied:
            plan = self._plan_untied(embedding, head)
        elif _is_apart(embedding, head):
            faults = self._refuse_untying(embedding, head)
            if faults:
                return EmbeddingPlan(), faults
            plan = self._untie(embedding, head)
        else:
            plan = self._keep_tied(embedding, head)
        return self._check_sizes(plan)

    def _plan_untied(self, embedding: ParameterDraft | None, head: ParameterDraft | None) -> EmbeddingPlan:
        changes = [
            self._change(draft, target=found, source=found)
            for draft in (embedding, head)
            if draft is not None and (found := self._names.find(draft.name)) is not None
        ]
        return EmbeddingPlan(changes=tuple(changes))

    def _keep_tied(self, embedding: ParameterDraft | None, head: ParameterDraft | None) -> EmbeddingPlan:
        """Change the one matrix; what the adapter holds of the output layer must be the same."""
        drafts = [draft for draft in (embedding, head) if draft is not None]
        wholes = [draft.whole for draft in drafts if draft.whole is not None]
        rows = [draft.rows for draft in drafts if draft.rows is not None]
        merged = ParameterDraft(
            name="embedding", whole=wholes[0] if wholes else None, rows=rows[0] if rows else None
        )
        equal_pairs = [(wholes[0].name, other.name) for other in wholes[1:]]
        equal_pairs += [(rows[0].tensor, other.tensor) for other in rows[1:]]
        targets = [self._embedding, self._stored_head] if self._stored_head else [self._embedding]
        changes = [self._change(merged, target=target, source=self._embedding) for target in targets]
        return EmbeddingPlan(changes=tuple(changes), equal_pairs=tuple(equal_pairs))

    def _untie(self, embedding: ParameterDraft | None, head: ParameterDraft | None) -> EmbeddingPlan:
        """Give each its own tensor; a base weight that was saved along stands for both."""
        embedding = embedding or ParameterDraft(name="embedding")
        default = self._stored_head or _HEAD_OF_TYPE.get(self._base.model_type, "lm_head.weight")
        head = head or ParameterDraft(name=default)
        saved = [d.whole for d in (embedding, head) if d.whole is not None and not d.is_trained]
        drafts = [replace(d, whole=d.whole or (saved[0] if saved else None)) for d in (embedding, head)]
        target = self._names.find(head.name) or head.name
        changes = [
            self._change(drafts[0], target=self._embedding, source=self._embedding),
            self._change(drafts[1], target=target, source=self._embedding),
        ]
        is_untouched = (drafts[0].whole, drafts[0].pair, drafts[0].rows) == (None, None, None)
        equal_pairs = [(saved[0].name, saved[1].name)] if len(saved) == 2 else []
        return EmbeddingPlan(
            changes=tuple(changes[1:] if is_untouched else changes),
            equal_pairs=tuple(equal_pairs),
            is_untied=True,
        )

    def _change(self, draft: ParameterDraft, *, target: str | None, source: str | None) -> TensorChange:
        if target is None or source is None:
            raise ValueError("a change of the embedding needs an embedding in the base")
        shape = draft.whole.shape if draft.whole is not None else self._base.tensors[source].info.shape
        return TensorChange(
            target=target,
            source=source,
            shape=shape,
            whole=None if draft.whole is None else draft.whole.name,
            pair=draft.pair,
            rows=draft.rows,
        )

    def _refuse_untying(self, embedding: ParameterDraft | None, head: ParameterDraft | None) -> list[Finding]:
        where = shown((head or embedding or ParameterDraft(name="lm_head.weight")).name)
        faults = []
        if self._base.model_type in _ALWAYS_TIED or not self._names.has_body_prefix:
            message = (
                "Input and output embedding were trained apart, but are one matrix in the base model, and "
                "this base "
                "cannot be given an output layer of its own: vLLM would not read it."
            )
            remedy = (
                "Train without the embedding and the output layer, or with ensure_weight_tying and token "
                "rows."
            )
            faults.append(Finding.error("untied-head-unsupported", message, where=where, remedy=remedy))
        has_pair = any(d is not None and (d.pair is not None or d.is_trained) for d in (embedding, head))
        has_rows = any(d is not None and d.rows is not None for d in (embedding, head))
        if has_pair and has_rows:
            message = "Single rows and the whole matrix of tied embeddings were trained together."
            remedy = "Train either trainable_token_indices or the embedding itself."
            faults.append(
                Finding.error("adapter-combination-unsupported", message, where=where, remedy=remedy)
            )
        return faults

    def _check_sizes(self, plan: EmbeddingPlan) -> tuple[EmbeddingPlan, list[Finding]]:
        """Compare the numbers of rows; every matrix of the vocabulary must have the same."""
        sizes = {change.target: change.shape for change in plan.changes}
        stored = [name for name in (self._embedding, self._stored_head) if name is not None]
        base_shape = self._base.tensors[stored[0]].info.shape
        shapes = {name: self._base.tensors[name].info.shape for name in stored} | sizes
        if len(set(shapes.values())) > 1:
            text = ", ".join(f"{shown(name)} {list(shape)}" for name, shape in sorted(shapes.items()))
            message = f"Input and output embedding would have different shapes: {text}."
            return plan, [Finding.error("vocabulary-mismatch", message, remedy=OTHER_BASE)]
        num_rows = next(iter(shapes.values()))[0]
        if num_rows == base_shape[0]:
            return plan, []
        message = (
            f"The vocabulary was resized from {base_shape[0]} to {num_rows} rows. The merged model keeps the "
            "base's "
            "tokenizer, so new tokens are reached only if that tokenizer has them."
        )
        remedy = "Register a base model whose tokenizer and embedding have the new tokens already."
        finding = Finding.warning("vocabulary-resized", message, remedy=remedy)
        return replace(plan, vocab_size=num_rows), [finding]


def _is_apart(embedding: ParameterDraft | None, head: ParameterDraft | None) -> bool:
    """Return whether the two matrices of a tied model were trained apart."""
    for draft in (embedding, head):
        if draft is not None and (draft.pair is not None or (draft.whole is not None and draft.is_trained)):
            return True
    if head is None or head.rows is None:
        return False
    return embedding is None or embedding.rows is None or embedding.rows.indices != head.rows.indices


def _shortest(base: BaseModelSummary, leaves: frozenset[str]) -> str | None:
    """Return the shortest name of a matrix with one of these last parts; deeper ones belong to other
    towers.
    """
    names = [
        name
        for name, tensor in base.tensors.items()
        if name.endswith(".weight")
        and leaf_name(name.removesuffix(".weight")) in leaves
        and len(tensor.info.shape) == 2
    ]
    return min(names, key=lambda name: (name.count("."), name), default=None)
