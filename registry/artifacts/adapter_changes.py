"""What an adapter changes, as values: the adapted modules, and every tensor of the merged model that differs.

Filled by `adapter_tensors` from headers alone and carried out by the merge. Standard library only.
"""

from dataclasses import dataclass, field

from registry.artifacts.safetensors_header import TensorInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class AdapterModule:
    """One low-rank pair: scaling * B @ A, transposed if `is_transposed`, is added to the parameter.

    Attributes:
        module: dotted name in the model.
        base_tensor: name of the parameter in the base model's files; for fused experts that are stored
            singly, the name of the fused parameter in the model.
        tensor_a: name in the adapter's file of A: [rank, d_in]; [num_experts * rank, d_in] for experts.
        tensor_b: name in the adapter's file of B: [d_out, rank]; [d_out, rank * num_experts] for experts, the
            expert's number running fastest.
        rank: from A's shape.
        alpha: from the configuration (alpha_pattern counts).
        scaling: alpha / rank, or alpha / sqrt(rank) with use_rslora.
        is_transposed: whether the parameter is [d_in, d_out] (Conv1D, embeddings) instead of [d_out, d_in].
        num_parameters: elements of A and B, and of what belongs to them.
        num_experts: matrices in the parameter; 1 for all but fused experts.
        tensor_magnitude: name in the adapter's file of DoRA's magnitudes: [d_out]; None without DoRA.
    """

    module: str
    base_tensor: str
    tensor_a: str
    tensor_b: str
    rank: int
    alpha: float
    scaling: float
    is_transposed: bool
    num_parameters: int
    num_experts: int = 1
    tensor_magnitude: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRows:
    """Rows of an embedding that replace those of the base.

    Attributes:
        tensor: name in the adapter's file: [len(indices), hidden].
        indices: the rows' numbers, distinct.
    """

    tensor: str
    indices: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedBias:
    """A bias of lora_B: scaling times the tensor is added to the base's bias."""

    tensor: str
    scaling: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorChange:
    """One tensor of the merged model that is not the base's.

    It starts from `whole` if there is one, else from the base's `source`; then the pair's delta is added, the
    magnitudes are set, the bias is added, and the rows are replaced, whichever of these there are; at the end
    it is rounded to the dtype of `source`.

    Attributes:
        target: name in the merged model's files.
        source: the base's tensor; another than `target` only for an output layer that was tied to the
            embedding.
        shape: of the merged tensor; differs from the base's only in the number of rows of an embedding.
        whole: name in the adapter's file of a tensor that replaces the base's.
        pair: the low-rank pair.
        expert: which expert's part of the pair, for experts that are stored singly; None means all.
        delta_begin: first row of that expert's delta that belongs to this tensor.
        bias: of lora_B.
        rows: single rows.
    """

    target: str
    source: str
    shape: tuple[int, ...]
    whole: str | None = None
    pair: AdapterModule | None = None
    expert: int | None = None
    delta_begin: int = 0
    bias: AddedBias | None = None
    rows: TokenRows | None = None


@dataclass(slots=True, kw_only=True)
class ParameterDraft:
    """What was found so far for one parameter of the model.

    Attributes:
        name: of the parameter in the model, for example "lm_head.weight".
        whole: a tensor that replaces it.
        is_trained: whether `whole` was trained, or is only the base's own weight saved along.
        pair: the low-rank pair on it.
        bias: what lora_B's bias adds.
        rows: single rows.
    """

    name: str
    whole: TensorInfo | None = None
    is_trained: bool = False
    pair: AdapterModule | None = None
    bias: AddedBias | None = None
    rows: TokenRows | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingPlan:
    """What becomes of the input and the output embedding.

    Attributes:
        changes: to the two tensors.
        equal_pairs: names of tensors of the adapter that must hold the same values.
        vocab_size: rows of the merged embedding, where that differs from the base's; None where not.
        is_untied: whether the output layer gets a tensor of its own, which it had not in the base.
    """

    changes: tuple[TensorChange, ...] = ()
    equal_pairs: tuple[tuple[str, str], ...] = ()
    vocab_size: int | None = None
    is_untied: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """Everything that the adapter changes, and what it holds besides.

    Attributes:
        modules: the low-rank pairs, sorted by module.
        changes: every tensor of the merged model that differs, sorted by name.
        unused: names of tensors of the adapter that peft loads and does not use (frozen originals).
        embedding: what becomes of the embeddings; its changes are among `changes`.
        obstacles: why vLLM cannot serve the adapter form, as far as the tensors say.
    """

    modules: tuple[AdapterModule, ...] = ()
    changes: tuple[TensorChange, ...] = ()
    unused: tuple[str, ...] = ()
    embedding: EmbeddingPlan = field(default_factory=EmbeddingPlan)
    obstacles: tuple[str, ...] = ()

    def count_uses(self) -> dict[str, int]:
        """Return how many times each tensor of the adapter's file is meant."""
        uses: dict[str, int] = {}
        pairs = {change.pair.tensor_a: change.pair for change in self.changes if change.pair is not None}
        names: list[str | None] = [*self.unused]
        for pair in pairs.values():
            names += [pair.tensor_a, pair.tensor_b, pair.tensor_magnitude]
        names += {change.whole for change in self.changes}
        names += {change.bias.tensor for change in self.changes if change.bias is not None}
        names += {change.rows.tensor for change in self.changes if change.rows is not None}
        used = {name for name in names if name is not None}
        names += [right for left, right in self.embedding.equal_pairs if right not in used]
        for name in names:
            if name is not None:
                uses[name] = uses.get(name, 0) + 1
        return uses
