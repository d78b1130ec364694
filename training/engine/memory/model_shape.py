"""The shape of a decoder model out of its config.json, and the parameters that follow from it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from registry.artifacts.findings import shown_list
from training.engine.errors import ConfigInvalid, Fault

ATTENTION_MODULES = ("q_proj", "k_proj", "v_proj", "o_proj")
FEED_FORWARD_MODULES = ("gate_proj", "up_proj", "down_proj")
MAX_SIZE = 10**8
"""Widths and numbers of rows above this are no model's."""
MAX_LAYERS = 10_000
MAX_EXPERTS = 100_000
_UNSHAPED = "The memory of this architecture cannot be told from these keys alone."


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearShape:
    """One kind of linear module.

    Attributes:
        name: Last part of its name, such as ``q_proj``.
        num_in: Width of its input.
        num_out: Width of its output.
        num_modules: How many there are in the whole model.
        has_bias: Whether it adds a bias.
    """

    name: str
    num_in: int
    num_out: int
    num_modules: int
    has_bias: bool = False

    @property
    def num_parameters(self) -> int:
        """Weights and biases of all modules of this kind."""
        return self.num_modules * (self.num_in * self.num_out + (self.num_out if self.has_bias else 0))

    def count_lora(self, rank: int) -> int:
        """Return the trainable parameters of a LoRA on all of them: r x (d_in + d_out) each (MISSION B2)."""
        return self.num_modules * rank * (self.num_in + self.num_out)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """A decoder model with gated feed-forward blocks, the Llama family's shape.

    Attributes:
        num_layers: Blocks.
        hidden_size: Width between blocks.
        num_heads: Query heads.
        num_kv_heads: Key and value heads; fewer than ``num_heads`` is grouped-query attention.
        head_size: Width of one head; need not be hidden_size / num_heads.
        intermediate_size: Width inside a dense feed-forward block.
        vocab_size: Rows of the embedding.
        has_tied_embeddings: Whether the output layer is the embedding; it is counted once then.
        has_attention_bias: Whether q, k and v add a bias.
        num_experts: Experts of a sparse block; 0 for dense models.
        num_active_experts: Experts that one token passes; 0 for dense models.
        expert_size: Width inside one expert; 0 for dense models.
        num_sparse_layers: Blocks with experts; the others are dense.
        shared_expert_size: Width of the expert that every token passes; 0 when there is none.
    """

    num_layers: int
    hidden_size: int
    num_heads: int
    num_kv_heads: int
    head_size: int
    intermediate_size: int
    vocab_size: int
    has_tied_embeddings: bool = False
    has_attention_bias: bool = False
    num_experts: int = 0
    num_active_experts: int = 0
    expert_size: int = 0
    num_sparse_layers: int = 0
    shared_expert_size: int = 0

    def list_linear(self) -> tuple[LinearShape, ...]:
        """Return the linear modules by kind; modules of experts count one for each expert."""
        num_dense = self.num_layers - self.num_sparse_layers
        shapes = [*self._attention()]
        shapes += _gated(self.hidden_size, self.intermediate_size, num_dense)
        shapes += _gated(self.hidden_size, self.expert_size, self.num_sparse_layers * self.num_experts)
        if self.shared_expert_size:
            shapes += _gated(self.hidden_size, self.shared_expert_size, self.num_sparse_layers)
        return tuple(shape for shape in shapes if shape.num_modules)

    @property
    def block_inputs(self) -> float:
        """Widths of the inputs of all linear modules that one token passes in a block, added up: the mean of
        the blocks.
        """
        attention = 3 * self.hidden_size + self.num_heads * self.head_size
        dense = 2 * self.hidden_size + self.intermediate_size
        sparse = self.num_active_experts * (2 * self.hidden_size + self.expert_size)
        if self.shared_expert_size:
            sparse += 2 * self.hidden_size + self.shared_expert_size
        num_dense = self.num_layers - self.num_sparse_layers
        return attention + (dense * num_dense + sparse * self.num_sparse_layers) / self.num_layers

    @property
    def num_linear_parameters(self) -> int:
        """Parameters of the linear modules inside blocks: what quantisation shrinks."""
        return sum(shape.num_parameters for shape in self.list_linear())

    @property
    def num_parameters(self) -> int:
        """All parameters: embedding, output layer where it is not the embedding, blocks, norms, routers."""
        embeddings = self.vocab_size * self.hidden_size * (1 if self.has_tied_embeddings else 2)
        norms = (2 * self.num_layers + 1) * self.hidden_size
        routers = self.num_sparse_layers * self.num_experts * self.hidden_size
        return embeddings + norms + routers + self.num_linear_parameters

    def count_lora(self, rank: int, target_modules: Sequence[str], *, num_layers: int | None = None) -> int:
        """Return the trainable parameters of a LoRA.

        Args:
            rank: r.
            target_modules: Last parts of module names.
            num_layers: Adapted blocks, for a LoRA on a part of them (MISSION B5); None adapts all.

        Raises:
            ConfigInvalid: ``target-module-unknown`` for names that this shape does not have.
        """
        shapes = self.list_linear()
        unknown = sorted(set(target_modules) - {shape.name for shape in shapes})
        if unknown:
            known = ", ".join(dict.fromkeys(shape.name for shape in shapes))
            message = f"The model has no {shown_list(unknown)}; it has {known}."
            raise ConfigInvalid("target-module-unknown", message)
        whole = sum(shape.count_lora(rank) for shape in shapes if shape.name in target_modules)
        return whole if num_layers is None else round(whole * num_layers / self.num_layers)

    def _attention(self) -> tuple[LinearShape, ...]:
        queries, keys = self.num_heads * self.head_size, self.num_kv_heads * self.head_size
        bias = self.has_attention_bias
        widths = ((self.hidden_size, queries), (self.hidden_size, keys), (self.hidden_size, keys))
        projections = [
            LinearShape(name=name, num_in=num_in, num_out=out, num_modules=self.num_layers, has_bias=bias)
            for name, (num_in, out) in zip(ATTENTION_MODULES[:3], widths, strict=True)
        ]
        output = LinearShape(
            name="o_proj", num_in=queries, num_out=self.hidden_size, num_modules=self.num_layers
        )
        return (*projections, output)


def _gated(hidden_size: int, width: int, num_modules: int) -> list[LinearShape]:
    widths = ((hidden_size, width), (hidden_size, width), (width, hidden_size))
    return [
        LinearShape(name=name, num_in=num_in, num_out=num_out, num_modules=num_modules)
        for name, (num_in, num_out) in zip(FEED_FORWARD_MODULES, widths, strict=True)
    ]


def read_model_shape(config: Mapping[str, Any]) -> ModelShape:
    """Read the shape out of the content of config.json; of a composed model its text part.

    Raises:
        ConfigInvalid: ``model-shape-unknown`` with every key that is missing or wrong.
    """
    source = text_part(config)
    sizes = _Sizes(source)
    hidden = sizes.need("hidden_size", "n_embd", "d_model")
    heads = sizes.need("num_attention_heads", "n_head")
    layers = sizes.need("num_hidden_layers", "n_layer", limit=MAX_LAYERS)
    vocab = sizes.need("vocab_size")
    experts = sizes.find("num_local_experts", "num_experts", "n_routed_experts", limit=MAX_EXPERTS)
    intermediate = sizes.find("intermediate_size", "n_inner", "ffn_dim")
    expert_size = sizes.find("moe_intermediate_size") or (intermediate if experts else 0)
    num_dense = _count_dense_layers(source, sizes, layers) if experts else layers
    if not intermediate and num_dense:
        sizes.miss("intermediate_size")
    head_size = sizes.find("head_dim") or hidden // heads
    if not head_size and not sizes.has_faults:
        sizes.miss("head_dim")
    shared = sizes.find("shared_expert_intermediate_size")
    if experts and not shared:
        shared = sizes.find("n_shared_experts", limit=MAX_EXPERTS) * expert_size
    kv_heads = sizes.find("num_key_value_heads") or heads
    num_active = sizes.find("num_experts_per_tok", limit=MAX_EXPERTS) if experts else 0
    sizes.raise_faults()
    return ModelShape(
        num_layers=layers,
        hidden_size=hidden,
        num_heads=heads,
        num_kv_heads=kv_heads,
        head_size=head_size,
        intermediate_size=intermediate,
        vocab_size=vocab,
        has_tied_embeddings=_is_tied(source),
        has_attention_bias=_has_attention_bias(source),
        num_experts=experts,
        num_active_experts=num_active,
        expert_size=expert_size,
        num_sparse_layers=layers - num_dense,
        shared_expert_size=shared,
    )


def text_part(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the keys of the language model: those of ``text_config`` win where there is one."""
    text = config.get("text_config")
    return {**config, **text} if isinstance(text, Mapping) else config


def model_type_of(config: Mapping[str, Any]) -> str:
    """Return transformers' name of the language model's architecture; "" when none is stated."""
    value = text_part(config).get("model_type")
    return value if isinstance(value, str) else ""


class _Sizes:
    """Reads whole numbers out of a configuration and keeps what is wrong with them."""

    def __init__(self, source: Mapping[str, Any]) -> None:
        self._source = source
        self._faults: dict[str, Fault] = {}

    def find(self, *names: str, limit: int = MAX_SIZE) -> int:
        """Return the first of the keys that is a whole number above 0; 0 when none is."""
        for name in names:
            value = self._source.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                if value <= limit:
                    return value
                message = f"is above {limit:,}"
                self._faults[name] = Fault(code="model-key-too-large", message=message, where=name)
        return 0

    def need(self, *names: str, limit: int = MAX_SIZE) -> int:
        """As ``find``; without one a fault is kept and 1 is returned."""
        value = self.find(*names, limit=limit)
        if not value and not self._faults.keys() & set(names):
            self.miss(names[0])
        return value or 1

    def miss(self, name: str) -> None:
        message = "is missing or no whole number above 0"
        self._faults.setdefault(name, Fault(code="model-key-missing", message=message, where=name))

    @property
    def has_faults(self) -> bool:
        return bool(self._faults)

    def raise_faults(self) -> None:
        if not self._faults:
            return
        names = ", ".join(self._faults)
        message = f"config.json has no usable {names}. {_UNSHAPED}"
        raise ConfigInvalid("model-shape-unknown", message, faults=tuple(self._faults.values()))


def _is_tied(source: Mapping[str, Any]) -> bool:
    # transformers' own default is True; the Llama and Qwen families state it, Gemma leaves it out.
    value = source.get("tie_word_embeddings")
    return value if isinstance(value, bool) else model_type_of(source) not in _UNTIED_BY_DEFAULT


def _has_attention_bias(source: Mapping[str, Any]) -> bool:
    value = source.get("attention_bias")
    return value if isinstance(value, bool) else model_type_of(source) in _BIASED_BY_DEFAULT


_UNTIED_BY_DEFAULT = frozenset({"llama", "mistral", "mixtral", "qwen2", "qwen2_moe", "qwen3", "qwen3_moe"})
_BIASED_BY_DEFAULT = frozenset({"qwen2", "qwen2_moe"})


def _count_dense_layers(source: Mapping[str, Any], sizes: _Sizes, layers: int) -> int:
    """How many of the blocks have no experts (DeepSeek: the first ones; Qwen: listed, or every n-th)."""
    first = min(sizes.find("first_k_dense_replace"), layers)
    listed = source.get("mlp_only_layers")
    dense = set(range(first)) | {
        index for index in (listed if isinstance(listed, list) else ()) if isinstance(index, int)
    }
    step = sizes.find("decoder_sparse_step") or 1
    dense |= {index for index in range(layers) if (index + 1) % step}
    return len({index for index in dense if 0 <= index < layers})
