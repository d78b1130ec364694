"""Checking merged weights by themselves: their logits against those of base + adapter, teacher-forced, in
fp32.

What remains is the rounding of the merged weights to the base's dtype; a wrong scale or an unmatched layer
shows as a difference many times larger (MISSION E2).

Shape letters: T tokens of one prompt, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from peft import PeftModel
from transformers import PreTrainedModel

from training.engine.chat import ChatTokenizer
from training.engine.lora_model import load_base_model, load_tokenizer

NEAR_TIE_LOGITS = 0.1
"""Two top logits closer than this may swap by rounding alone; such positions are counted apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogitReport:
    """How far the merged model's next-token distributions are from those of base + adapter.

    Attributes:
        num_prompts: Texts compared.
        num_positions: Tokens compared.
        max_abs_logit_difference: Largest difference of a logit.
        mean_kl_divergence: Mean over positions of KL(adapter || merged), in nats.
        base_mean_kl_divergence: The same for the plain base instead of the merged model: the size of what the
            adapter does, for comparison.
        num_top1_differ: Positions whose most likely token differs, near ties left out.
        num_near_ties: Positions whose most likely token differs but whose top logits are within a tenth.
    """

    num_prompts: int
    num_positions: int
    max_abs_logit_difference: float
    mean_kl_divergence: float
    base_mean_kl_divergence: float
    num_top1_differ: int
    num_near_ties: int

    def to_values(self) -> dict[str, float | int]:
        """Return the report as JSON values."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerDifference:
    """How far the hidden states after one layer are apart, relative to those of base + adapter.

    Attributes:
        layer: 0 is the embedding, n the n-th decoder layer.
        merged_fraction: Norm of (merged - adapter) over the norm of adapter.
        base_fraction: The same for the plain base: what the adapter does up to there.
    """

    layer: int
    merged_fraction: float
    base_fraction: float


@dataclass(frozen=True, slots=True)
class ModelPair:
    """The two models that are compared, in fp32 on the CPU.

    Attributes:
        adapted: Base + adapter in peft.
        merged: The merged model.
        tokenizer: The base's.
    """

    adapted: PeftModel
    merged: PreTrainedModel
    tokenizer: ChatTokenizer

    def encode(self, prompts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of the prompts that have any.

        Raises:
            ValueError: If there is no text with a token.
        """
        encoded = [ids for text in prompts if (ids := self.tokenizer.encode(text, add_special_tokens=False))]
        if not encoded:
            raise ValueError("the comparison needs at least one text that is not empty")
        return encoded


def load_pair(*, base_model: Path, adapter: Path, merged: Path, vocab_size: int | None = None) -> ModelPair:
    """Load base + adapter and the merged model: two copies of the model in fp32.

    Args:
        base_model: Hugging Face folder.
        adapter: PEFT folder.
        merged: Folder that `run_merge` wrote.
        vocab_size: Rows to which the adapter's training resized the embeddings; None when it did not.

    Raises:
        BaseModelUnavailable: A model cannot be loaded.
    """
    base = _load(base_model)
    if vocab_size is not None:
        base.resize_token_embeddings(vocab_size, mean_resizing=False)
    adapted = PeftModel.from_pretrained(base, adapter)
    adapted.eval()
    return ModelPair(adapted, _load(merged), load_tokenizer(base_model))


@torch.no_grad()
def verify_logits(pair: ModelPair, *, prompts: Sequence[str]) -> LogitReport:
    """Compare merged weights with base + adapter on texts.

    Args:
        pair: The models.
        prompts: Texts; tokenised as they are, without a chat template. At least one.

    Raises:
        ValueError: If there is no text with a token.
    """
    encoded = pair.encode(prompts)
    parts = []
    for ids in encoded:
        tokens = torch.tensor([ids])
        with pair.adapted.disable_adapter():
            plain = _log_probabilities(pair.adapted, tokens)
        parts.append(_compare(pair.adapted(tokens).logits[0], pair.merged(tokens).logits[0], plain))
    sums = [sum(values) for values in zip(*(part[1:] for part in parts), strict=True)]
    num_positions = sum(len(ids) for ids in encoded)
    return LogitReport(
        num_prompts=len(encoded),
        num_positions=num_positions,
        max_abs_logit_difference=max(part[0] for part in parts),
        mean_kl_divergence=sums[0] / num_positions,
        base_mean_kl_divergence=sums[1] / num_positions,
        num_top1_differ=int(sums[2]),
        num_near_ties=int(sums[3]),
    )


@torch.no_grad()
def compare_layers(pair: ModelPair, *, prompts: Sequence[str]) -> tuple[LayerDifference, ...]:
    """Compare the hidden states layer by layer, to show where a difference begins.

    Args:
        pair: The models.
        prompts: Texts, of which the longest is used.

    Raises:
        ValueError: If there is no text with a token.
    """
    tokens = torch.tensor([max(pair.encode(prompts), key=len)])
    with pair.adapted.disable_adapter():
        plain = pair.adapted(tokens, output_hidden_states=True).hidden_states
    adapted = pair.adapted(tokens, output_hidden_states=True).hidden_states
    merged = pair.merged(tokens, output_hidden_states=True).hidden_states
    return tuple(
        LayerDifference(
            layer=layer,
            merged_fraction=float((left - right).norm() / left.norm()),
            base_fraction=float((left - before).norm() / left.norm()),
        )
        for layer, (left, right, before) in enumerate(zip(adapted, merged, plain, strict=True))
    )


def _load(folder: Path) -> PreTrainedModel:
    model = load_base_model(folder, dtype=torch.float32, attention="eager", device=torch.device("cpu"))
    return model.eval()


def _log_probabilities(model: PeftModel, tokens: torch.Tensor) -> torch.Tensor:
    """Return [T, V]."""
    result: torch.Tensor = model(tokens).logits[0].log_softmax(-1)
    return result


def _compare(
    adapted: torch.Tensor, merged: torch.Tensor, plain: torch.Tensor
) -> tuple[float, float, float, int, int]:
    """Compare logits [T, V], ``plain`` being log-probabilities.

    Returns the largest difference, the two summed KL divergences, and the numbers of changed and near-tied
    tops.
    """
    log_adapted = adapted.log_softmax(-1)
    probabilities = log_adapted.exp()
    kl_merged = float((probabilities * (log_adapted - merged.log_softmax(-1))).sum())
    kl_plain = float((probabilities * (log_adapted - plain)).sum())
    differs = adapted.argmax(-1) != merged.argmax(-1)
    top = adapted.topk(2, dim=-1).values
    is_near = (top[:, 0] - top[:, 1]) < NEAR_TIE_LOGITS
    return (
        float((adapted - merged).abs().max()),
        kl_merged,
        kl_plain,
        int((differs & ~is_near).sum()),
        int((differs & is_near).sum()),
    )
