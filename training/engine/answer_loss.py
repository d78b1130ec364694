"""The loss on answer tokens, without computing the logits of all the others.

Shape letters: B rows, T tokens, N trained tokens of the batch, D hidden size, V vocabulary.
"""

from typing import Any

import torch
from torch.nn.functional import cross_entropy
from transformers import PreTrainedModel

from training.engine.batches import Batch
from training.engine.chat import IGNORED_LABEL

SPLIT_TOLERANCE = 2e-2
"""Largest relative difference between the loss by parts and the model's own, as a check that the parts are
the whole model. A wrong split (soft-capped or scaled logits left out) is off by far more; bf16 rounding stays
below."""


class AnswerLoss:
    """Sums the negative log-likelihood of the trained tokens.

    The hidden states that predict a trained token are picked before the output layer, so that the logits are
    [N, V] instead of [B, T, V]. Whether a model is just its backbone followed by its output layer is tried
    out on one batch; where it is not (logits that are scaled or capped afterwards), the model's own logits
    are used.

    Args:
        model: A causal language model, with or without a PEFT adapter injected into its modules.
        probe: A batch to try the split on, on the model's device.
    """

    def __init__(self, model: PreTrainedModel, probe: Batch) -> None:
        self._model = model
        self._backbone: Any = getattr(model, model.base_model_prefix, None)
        self._head: Any = model.get_output_embeddings()
        self.is_split = self._can_split(probe)

    def sum(self, batch: Batch) -> torch.Tensor:
        """Return the summed loss in nats over the N trained tokens, a float32 scalar.

        Only the model's forward pass follows an enclosing autocast; the logits are upcast first.
        """
        return self._split_sum(batch) if self.is_split else self._whole_sum(batch)

    def _can_split(self, probe: Batch) -> bool:
        if self._backbone is None or self._head is None or self._backbone is self._model:
            return False
        was_training = self._model.training
        self._model.eval()
        try:
            with torch.no_grad():
                split, whole = self._split_sum(probe).item(), self._whole_sum(probe).item()
        except (TypeError, AttributeError):
            # The parts do not fit together in the way that most models do; the whole model always works.
            return False
        finally:
            self._model.train(was_training)
        return abs(split - whole) <= SPLIT_TOLERANCE * max(abs(whole), 1.0)

    def _split_sum(self, batch: Batch) -> torch.Tensor:
        output = self._backbone(**batch.inputs, use_cache=False)
        targets = batch.labels[:, 1:]
        is_trained = targets != IGNORED_LABEL
        logits = self._head(output.last_hidden_state[:, :-1][is_trained])
        return cross_entropy(logits.float(), targets[is_trained], reduction="sum")

    def _whole_sum(self, batch: Batch) -> torch.Tensor:
        output = self._model(**batch.inputs, use_cache=False)
        targets = batch.labels[:, 1:]
        is_trained = targets != IGNORED_LABEL
        return cross_entropy(output.logits[:, :-1][is_trained].float(), targets[is_trained], reduction="sum")
