"""The memory of a training, line by line, and what to change when it does not fit (MISSION B1, D5).

The figures per parameter are those of mixed-precision Adam (Rajbhandari et al., "ZeRO: Memory optimizations
toward training trillion parameter models", 2020, section 3.1): 2 bytes weight, 2 gradient, 8 moments, 4
master copy.

Three lines are ranges where the guide has one figure: what QLoRA leaves unquantised, the activations without
checkpointing, and the buffers of large batches, where the logits and a recomputed block outgrow the 2-3 GB
that the guide gives for 2048 tokens. Figures called measured are slopes between batches of 1 and 4 rows of
440 tokens, in the resident memory of this package's trainer: LoRA on all seven projections, bf16, torch 2.13
on a CPU.
"""

from dataclasses import dataclass, replace
from typing import Final

from training.engine.config import DEFAULT_RANK, DEFAULT_TARGET_MODULES
from training.engine.memory.model_shape import ModelShape

METHODS: Final = ("full", "lora", "qlora")
BYTES_PER_TRAINED_PARAMETER: Final = 16
BYTES_PER_TRAINED_PARAMETER_WITH_SHORT_MOMENTS: Final = 12
BYTES_PER_FROZEN_PARAMETER: Final = 2
BYTES_PER_QUANTISED_PARAMETER: Final = 0.5
BYTES_PER_QUANTISED_PARAMETER_WITH_SCALES: Final = (4 + 0.127) / 8
"""With the scales of its blocks, quantised themselves (Dettmers et al., "QLoRA", 2023, section 3)."""
FULL_MARGIN_FRACTION: Final = 0.3
"""The guide's margin for full fine-tuning: real peaks are above those on paper."""
BUFFER_BYTES: Final = (2e9, 3e9)
BYTES_PER_LOGIT: Final = 12
"""Log-probabilities, their gradient and the gradient of the logits, 4 bytes each, in the backward pass of a
cross entropy in float32 (11.9 in the peak of a process that does nothing else, vocabulary of 151,936)."""
OVERHEAD_BYTES: Final = 2e9
BYTES_WITHOUT_CHECKPOINTING: Final = 34
"""Activation bytes per token, hidden unit and layer when nothing is recomputed and attention is fused
(Korthikanti et al., "Reducing activation recomputation in large transformer models", 2022, equation 1,
without the term of the attention scores)."""
BYTES_PER_KEPT_INPUT: Final = 10.5
"""Most that adapters keep for each input of a module, token and layer without checkpointing: they hold copies
in float32 (measured: 10.3 for SmolLM2-135M, 10.1 for a Llama of width 1024)."""
BYTES_PER_INPUT_COMPUTED_ANEW: Final = 17
"""Most that is alive while one checkpointed block is computed anew, likewise (measured: 16.5 and 14.5)."""
MIN_BATCH: Final = 1
SHORTEST_TOKENS: Final = 1024
"""Shorter rows would cut the data of most tasks; other changes come first."""
MIN_SAVING_FRACTION: Final = 0.02
"""A change that saves less is left out: it costs time or data and helps nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRequest:
    """A training whose memory is asked for.

    Attributes:
        method: full, lora or qlora.
        batch_size: Rows per forward pass on one card.
        length_tokens: Tokens per row.
        rank: Of the LoRA; unused for full.
        target_modules: Of the LoRA.
        num_lora_layers: Adapted blocks; None adapts all.
        has_checkpointing: Whether activations are recomputed in the backward pass.
        has_short_moments: Whether Adam's moments are bf16, 12 bytes per trained parameter instead of 16.
        num_cards: Cards that share the training.
        is_sharded: Whether weights, gradients and optimiser state are spread over the cards (FSDP, ZeRO-3);
            plain data parallelism holds all of them on each.
    """

    method: str
    batch_size: int = 1
    length_tokens: int = 2048
    rank: int = DEFAULT_RANK
    target_modules: tuple[str, ...] = DEFAULT_TARGET_MODULES
    num_lora_layers: int | None = None
    has_checkpointing: bool = True
    has_short_moments: bool = False
    num_cards: int = 1
    is_sharded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryLine:
    """One item of the ledger.

    Attributes:
        name: Stable name.
        low_bytes: Least for this item on one card.
        high_bytes: Most.
        how: The calculation in words.
    """

    name: str
    low_bytes: float
    high_bytes: float
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryEstimate:
    """The ledger of one card.

    Attributes:
        request: What was asked for.
        num_parameters: Of the model.
        num_trained: Parameters that are trained.
        lines: The items.
    """

    request: MemoryRequest
    num_parameters: int
    num_trained: int
    lines: tuple[MemoryLine, ...]

    @property
    def low_bytes(self) -> float:
        """Sum of the least."""
        return sum(line.low_bytes for line in self.lines)

    @property
    def high_bytes(self) -> float:
        """Sum of the most; what has to fit."""
        return sum(line.high_bytes for line in self.lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One change that saves memory.

    Attributes:
        request: The training after it and all changes before it.
        what: In words.
        high_bytes: The estimate after it.
        fits: Whether that fits the card.
    """

    request: MemoryRequest
    what: str
    high_bytes: float
    fits: bool


def estimate_memory(shape: ModelShape, request: MemoryRequest) -> MemoryEstimate:
    """Return the memory of a training on one of its cards.

    Args:
        shape: Of the base model.
        request: The training.

    Raises:
        ConfigInvalid: a target module that the model does not have.
        ValueError: an unknown method.
    """
    if request.method not in METHODS:
        raise ValueError(f"method must be one of {', '.join(METHODS)}, not {request.method!r}")
    num_parameters = shape.num_parameters
    is_full = request.method == "full"
    num_trained = (
        num_parameters
        if is_full
        else shape.count_lora(request.rank, request.target_modules, num_layers=request.num_lora_layers)
    )
    shares = request.num_cards if request.is_sharded else 1
    lines = [] if is_full else [_frozen_line(shape, request, shares)]
    lines += [_trained_line(request, num_trained, shares), _activation_line(shape, request)]
    lines.append(_buffer_line(shape, request))
    lines.append(
        MemoryLine(
            name="overhead",
            low_bytes=OVERHEAD_BYTES,
            high_bytes=OVERHEAD_BYTES,
            how="2 GB for the framework and fragments",
        )
    )
    if is_full:
        margin = FULL_MARGIN_FRACTION * sum(line.high_bytes for line in lines)
        how = f"{FULL_MARGIN_FRACTION:.0%} above the sum, since real peaks are above those on paper"
        lines.append(MemoryLine(name="margin", low_bytes=0.0, high_bytes=margin, how=how))
    return MemoryEstimate(
        request=request, num_parameters=num_parameters, num_trained=num_trained, lines=tuple(lines)
    )


def suggest_changes(shape: ModelShape, request: MemoryRequest, *, card_bytes: float) -> tuple[Change, ...]:
    """Return changes in the guide's order until the training fits: batch with accumulation, sequence length,
    checkpointing, adapters instead of full fine-tuning, quantisation last (MISSION D5).

    Args:
        shape: Of the base model.
        request: The training as planned.
        card_bytes: Memory of one card.

    Returns:
        Changes that build on each other, those that save next to nothing left out; empty when it fits as it
        is. When the last one does not fit, nothing does.
    """
    changes: list[Change] = []
    current, needed = request, estimate_memory(shape, request).high_bytes
    while needed > card_bytes:
        useful = (
            (what, changed, high_bytes)
            for what, changed in _list_changes(current)
            if (high_bytes := estimate_memory(shape, changed).high_bytes) <= card_bytes
            or high_bytes < needed * (1 - MIN_SAVING_FRACTION)
        )
        what, current, needed = next(useful, ("", current, needed))
        if not what:
            break
        changes.append(Change(request=current, what=what, high_bytes=needed, fits=needed <= card_bytes))
    return tuple(changes)


def _list_changes(request: MemoryRequest) -> list[tuple[str, MemoryRequest]]:
    """The changes that are left, in the order of treatment; each on top of the request alone."""
    changes: list[tuple[str, MemoryRequest]] = []
    if request.batch_size > MIN_BATCH:
        what = f"batch 1 with {request.batch_size} times the accumulation: the same steps"
        changes.append((what, replace(request, batch_size=MIN_BATCH)))
    length = request.length_tokens // 2
    if length >= SHORTEST_TOKENS:
        what = f"{length} tokens, if the 95th percentile of the data allows it"
        changes.append((what, replace(request, length_tokens=length)))
    if not request.has_checkpointing:
        changes.append(
            ("gradient checkpointing, about 30 % slower", replace(request, has_checkpointing=True))
        )
    if request.num_cards > 1 and not request.is_sharded:
        what = f"weights and states sharded over {request.num_cards} cards"
        changes.append((what, replace(request, is_sharded=True)))
    if request.method == "full":
        changes.append(("LoRA instead of full fine-tuning", replace(request, method="lora")))
    if request.method == "lora":
        # For exploring only: MISSION B4.
        what = "QLoRA, for exploring: slower and slightly worse"
        changes.append((what, replace(request, method="qlora")))
    return changes


def _frozen_line(shape: ModelShape, request: MemoryRequest, shares: int) -> MemoryLine:
    num_parameters = shape.num_parameters
    if request.method != "qlora":
        size = num_parameters * BYTES_PER_FROZEN_PARAMETER / shares
        how = f"{num_parameters:,} frozen parameters x {BYTES_PER_FROZEN_PARAMETER} bytes{_shared(shares)}"
        return MemoryLine(name="frozen_weights", low_bytes=size, high_bytes=size, how=how)
    num_kept = num_parameters - shape.num_linear_parameters
    high = (
        shape.num_linear_parameters * BYTES_PER_QUANTISED_PARAMETER_WITH_SCALES
        + num_kept * BYTES_PER_FROZEN_PARAMETER
    )
    how = (
        f"{num_parameters:,} frozen parameters x {BYTES_PER_QUANTISED_PARAMETER:g} bytes{_shared(shares)}; "
        f"most: with scales, and {num_kept:,} of embeddings and norms kept at "
        f"{BYTES_PER_FROZEN_PARAMETER} bytes"
    )
    low = num_parameters * BYTES_PER_QUANTISED_PARAMETER
    return MemoryLine(name="frozen_weights", low_bytes=low / shares, high_bytes=high / shares, how=how)


def _trained_line(request: MemoryRequest, num_trained: int, shares: int) -> MemoryLine:
    per_parameter = (
        BYTES_PER_TRAINED_PARAMETER_WITH_SHORT_MOMENTS
        if request.has_short_moments
        else BYTES_PER_TRAINED_PARAMETER
    )
    size = num_trained * per_parameter / shares
    how = f"{num_trained:,} trained parameters x {per_parameter} bytes{_shared(shares)}"
    return MemoryLine(name="trained_states", low_bytes=size, high_bytes=size, how=how)


def _activation_line(shape: ModelShape, request: MemoryRequest) -> MemoryLine:
    per_unit = 2 if request.has_checkpointing else BYTES_WITHOUT_CHECKPOINTING
    num_tokens = request.length_tokens * request.batch_size
    low = high = float(num_tokens * shape.hidden_size * per_unit * shape.num_layers)
    kind = "kept between blocks" if request.has_checkpointing else "of whole blocks"
    how = (
        f"activations {kind}: {request.length_tokens} tokens x {request.batch_size} x {shape.hidden_size} x "
        f"{per_unit} x {shape.num_layers} layers"
    )
    if not request.has_checkpointing and request.method != "full":
        high = max(low, num_tokens * shape.block_inputs * BYTES_PER_KEPT_INPUT * shape.num_layers)
        how += (
            f"; most: {BYTES_PER_KEPT_INPUT} bytes for each of the {shape.block_inputs:,.0f} inputs of a "
            "block's modules, which adapters copy"
        )
    return MemoryLine(name="activations", low_bytes=low, high_bytes=high, how=how)


def _buffer_line(shape: ModelShape, request: MemoryRequest) -> MemoryLine:
    """The guide's 2-3 GB, or what is known to be alive at once where that is more."""
    num_tokens = request.length_tokens * request.batch_size
    low_block = high_block = 0.0
    if request.has_checkpointing:
        # Without it the activations of all blocks are counted already.
        low_block = high_block = float(num_tokens * shape.hidden_size * BYTES_WITHOUT_CHECKPOINTING)
        if request.method != "full":
            high_block = max(low_block, num_tokens * shape.block_inputs * BYTES_PER_INPUT_COMPUTED_ANEW)
    logits = num_tokens * shape.vocab_size * BYTES_PER_LOGIT
    low, high = max(BUFFER_BYTES[0], low_block), max(BUFFER_BYTES[1], high_block + logits)
    how = "2-3 GB of buffers"
    if high > BUFFER_BYTES[1]:
        how += (
            f"; most: logits as if every token were an answer's, {num_tokens} x {shape.vocab_size} x "
            f"{BYTES_PER_LOGIT} bytes"
        )
        how += f", and {high_block / 1e9:.1f} GB of one block computed anew" if high_block else ""
    return MemoryLine(name="buffers", low_bytes=low, high_bytes=high, how=how)


def _shared(shares: int) -> str:
    return f" / {shares} cards" if shares > 1 else ""
