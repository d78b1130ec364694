"""Which forms an adapter can be served in: what is merged exactly, and what vLLM cannot serve beside the
base.

Sources: vLLM 0.32 `lora/peft_helper.py` (`validate_legal`), `lora/lora_model.py` (tensor names) and the model
classes' `embedding_modules`. Standard library only.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from registry.artifacts.adapter_config import CONFIG_FILE, AdapterConfig
from registry.artifacts.findings import Finding, shown, shown_list
from registry.artifacts.module_patterns import EMBEDDING_NAMES, HEAD_NAMES, leaf_name

CANNOT_SERVE: Final = "vllm-cannot-serve-adapter-form"
# vLLM 0.32 accepts only these values for max_lora_rank (FACTS section 2); an adapter's rank is rounded up to
# one of them.
VLLM_LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)
SAVE_WITHOUT_EMBEDDINGS = (
    "Save it with model.save_pretrained(folder, save_embedding_layers=False): the whole matrix is then left "
    "out."
)
# vLLM 0.32: the classes whose `embedding_modules` hold both embed_tokens and lm_head.
_EMBEDDING_ARCHITECTURES = frozenset(
    {
        "ApertusForCausalLM",
        "Exaone4ForCausalLM",
        "GraniteForCausalLM",
        "GraniteMoeForCausalLM",
        "Lfm2ForCausalLM",
        "LlamaForCausalLM",
        "MiniCPMForCausalLM",
        "MixtralForCausalLM",
        "NemotronForCausalLM",
        "PhiMoEForCausalLM",
        "Qwen3ForCausalLM",
        "Qwen3MoeForCausalLM",
        "SolarForCausalLM",
    }
)
_SERVED_WHOLE_MODULES = frozenset({"classifier", "score"})  # heads of classification models


@dataclass(frozen=True, slots=True)
class _Variant:
    """A kind of training beside plain LoRA that the merge carries out exactly."""

    name: str
    code: str
    message: str


_VARIANTS = (
    _Variant(
        "use_dora",
        "adapter-dora",
        "It is a DoRA adapter: the merge scales each output (column) to the trained magnitude.",
    ),
    _Variant(
        "lora_bias", "adapter-lora-bias", "Its lora_B layers have biases; they are added to the base's."
    ),
    _Variant(
        "modules_to_save",
        "adapter-modules-to-save",
        "It carries whole modules; the merge puts them in the place of the base model's.",
    ),
    _Variant(
        "trainable_token_indices",
        "adapter-trainable-tokens",
        "It changes single rows of an embedding; the merge writes these rows.",
    ),
    _Variant(
        "target_parameters",
        "adapter-target-parameters",
        "It adapts bare parameters (fused experts); their layout is told by shapes and peft_version.",
    ),
)


def describe_variants(config: AdapterConfig) -> Iterator[Finding]:
    """Say what the adapter holds beside a plain LoRA, and what the merge does with it."""
    for variant in _VARIANTS:
        if getattr(config, variant.name):
            yield Finding.info(variant.code, variant.message, where=_where(variant.name))
    if config.bias != "none":
        message = f"It trained biases of the base model (bias={config.bias!r}); the merge writes them."
        yield Finding.info("adapter-bias", message, where=_where("bias"))
    embeddings = sorted({leaf_name(name) for name in _listed_targets(config)} & EMBEDDING_NAMES)
    if embeddings:
        message = f"It adapts the input embedding ({', '.join(embeddings)}); the merge adds to the matrix."
        yield Finding.info("adapter-embedding", message, where=_where("target_modules"))


def list_obstacles(config: AdapterConfig, *, architectures: tuple[str, ...] = ()) -> list[str]:
    """Return why vLLM cannot serve the adapter beside its base model, as far as the configuration says.

    Args:
        config: of a LoRA adapter.
        architectures: of the chosen base model; empty when no base is at hand, and then nothing is said that
            depends on the model's class.
    """
    obstacles = []
    if config.use_dora:
        obstacles.append("DoRA magnitudes are not supported")
    if config.bias != "none":
        obstacles.append("trained biases are not supported")
    if config.lora_bias:
        obstacles.append("biases of lora_B are not supported")
    whole = [name for name in config.modules_to_save if leaf_name(name) not in _SERVED_WHOLE_MODULES]
    if whole:
        obstacles.append(f"whole modules are not supported ({shown_list(whole)})")
    if config.trainable_token_indices:
        obstacles.append("trained rows of an embedding are not loaded")
    if config.target_parameters:
        obstacles.append(
            "target_parameters is not read, and which fused experts are loaded depends on the class"
        )
    if architectures and not _EMBEDDING_ARCHITECTURES.intersection(architectures):
        leaves = {leaf_name(name) for name in _listed_targets(config)} & (EMBEDDING_NAMES | HEAD_NAMES)
        if leaves:
            obstacles.append(f"{shown(architectures[0])} takes no LoRA on {', '.join(sorted(leaves))}")
    return obstacles


def describe_serving(
    config: AdapterConfig, obstacles: Iterable[str] = (), *, architectures: tuple[str, ...] = ()
) -> Iterator[Finding]:
    """Refuse the adapter form when vLLM cannot serve it: one finding with every reason.

    Args:
        config: of a LoRA adapter.
        obstacles: further reasons, from the tensors.
        architectures: of the chosen base model; empty when no base is at hand.
    """
    reasons = [*list_obstacles(config, architectures=architectures), *obstacles]
    if reasons:
        yield Finding.error(CANNOT_SERVE, _refusal(reasons), remedy=_remedy(reasons))


def describe_merged_only(reasons: Iterable[str]) -> Finding:
    """Say that only the merged form can be served; for where that is all that is asked for."""
    message = f"vLLM serves it in the merged form only: {'; '.join(reasons)}."
    return Finding.info(CANNOT_SERVE, message)


def check_rank(
    config: AdapterConfig, ranks: Iterable[int], *, is_adapter_form_needed: bool
) -> Iterator[Finding]:
    """Check that vLLM has a max_lora_rank for the adapter; the merged form needs none.

    vLLM looks at the configuration's ranks even where no module has them (`peft_helper.validate_legal`).
    """
    largest = max([config.r, *config.rank_pattern.values(), *ranks])
    if round_up_rank(largest) is not None:
        return
    message = f"Its rank is {largest}; vLLM serves ranks up to {VLLM_LORA_RANKS[-1]} in adapter form."
    where, remedy = _where("r"), f"Train with r <= {VLLM_LORA_RANKS[-1]}."
    if is_adapter_form_needed:
        yield Finding.error("rank-too-large", message, where=where, remedy=remedy)
    else:
        yield Finding.info("rank-too-large", message, where=where, remedy=remedy)


def round_up_rank(rank: int) -> int | None:
    """Return the smallest max_lora_rank of vLLM that holds `rank`; None when none does."""
    return next((allowed for allowed in VLLM_LORA_RANKS if allowed >= rank), None)


def _refusal(reasons: list[str]) -> str:
    return (
        f"vLLM cannot serve base + adapter, which is needed here (to ship it in that form, or to compare the "
        f"canaries of both forms): {'; '.join(reasons)}. It can be merged."
    )


def _remedy(reasons: list[str]) -> str:
    if any("save_embedding_layers" in reason for reason in reasons):
        return SAVE_WITHOUT_EMBEDDINGS
    return "Train a plain LoRA (these fields left out) and submit that."


def _listed_targets(config: AdapterConfig) -> tuple[str, ...]:
    return config.target_modules if isinstance(config.target_modules, tuple) else ()


def _where(name: str) -> str:
    return f"{CONFIG_FILE}: {name}"
