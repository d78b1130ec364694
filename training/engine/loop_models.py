"""Which kind of trained model a method, or a model at hand, asks for."""

from pathlib import Path

from peft import PeftModel
from transformers import PreTrainedModel

from training.engine.config import TrainingConfig
from training.engine.full_model import FullModel
from training.engine.lora_model import add_lora
from training.engine.parallel.sharded_model import ShardedModel
from training.engine.process_group import ProcessGroup
from training.engine.trained_model import AdapterModel, TrainedModel


def make_trained_model(
    base: PreTrainedModel,
    config: TrainingConfig,
    *,
    base_model: Path,
    base_model_name: str | None,
    group: ProcessGroup,
) -> TrainedModel:
    """Make what a configuration trains out of a loaded base.

    Args:
        base: Is changed in place; in float32 for the method "full".
        config: Decides the method and the adapter's shape.
        base_model: Folder that the base was loaded from.
        base_model_name: Written into adapter_config.json; None takes the folder's name.
        group: Several processes share out the weights of a full training among them.

    Raises:
        ConfigInvalid: See `add_lora`.
    """
    if config.method != "full":
        return AdapterModel(add_lora(base, config.lora, base_model_name=base_model_name or base_model.name))
    if group.size == 1:
        return FullModel(base, base_model=base_model)
    return ShardedModel(base, base_model=base_model, group=group)


def as_trained_model(model: PeftModel | PreTrainedModel | TrainedModel) -> TrainedModel:
    """Return what is trained: the adapter of a PEFT model, all weights of a plain one.

    Args:
        model: A plain model is trained in place and not saved; a `TrainedModel` is returned as it is.
    """
    if isinstance(model, PeftModel):
        return AdapterModel(model)
    if isinstance(model, PreTrainedModel):
        return FullModel(model, base_model=None)
    return model
