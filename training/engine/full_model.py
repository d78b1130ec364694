"""All weights of a model in training, and the model folder that comes out of it."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import torch
from safetensors import safe_open
from transformers import GenerationConfig, PreTrainedModel

from training.engine.answer_loss import AnswerLoss
from training.engine.atomic_folder import atomic_folder
from training.engine.batches import Batch
from training.engine.device import Precision
from training.engine.errors import TrainingFailed
from training.engine.merge.companion_files import copy_companion_files
from training.engine.process_group import ProcessGroup
from training.engine.sharded_tensors import gather_whole
from training.engine.trained_model import BatchLoss

_CONFIGS: Final = ("config.json", "generation_config.json")


class FullModel:
    """A model whose weights are all trained, in float32, held whole by every process.

    Args:
        model: Weights in float32; all of them are made trainable.
        base_model: Folder that it was loaded from; its tokenizer, template and generation settings go along
            with the trained weights. None where nothing is to be saved.
    """

    needs_all_processes = False

    def __init__(self, model: PreTrainedModel, *, base_model: Path | None) -> None:
        self.module = model
        self._base_model = base_model
        for parameter in model.parameters():
            parameter.requires_grad_(True)
        self.trainables = dict(model.named_parameters())

    def prepare(self, probe: Batch, precision: Precision, *, gradient_checkpointing: bool) -> BatchLoss:
        """Switch checkpointing on and return the loss."""
        return self._make_loss(probe, precision, gradient_checkpointing=gradient_checkpointing)

    def _make_loss(self, probe: Batch, precision: Precision, *, gradient_checkpointing: bool) -> AnswerLoss:
        if gradient_checkpointing:
            self.module.gradient_checkpointing_enable({"use_reentrant": False})
        with precision.autocast():
            return AnswerLoss(self.module, probe)

    def start_alike(self, group: ProcessGroup) -> None:
        """Copy the weights of the first process."""
        group.copy_from_first(parameter.data for parameter in self.trainables.values())

    def sum_gradients(self, group: ProcessGroup) -> None:
        """Sum all gradients."""
        group.sum_gradients(self.trainables.values())

    def check_first_gradients(self) -> None:
        """Check that every matrix of the blocks has a gradient.

        Raises:
            TrainingFailed: ``weights-without-gradient``.
        """
        silent = [
            name
            for name, parameter in self.trainables.items()
            if parameter.ndim > 1 and not _has_gradient(parameter)
        ]
        if silent:
            raise TrainingFailed(
                "weights-without-gradient",
                f"{len(silent)} weight matrices get no gradient in the first step (for example "
                f"{', '.join(silent[:3])}): they would not be trained. Train an adapter on the modules that "
                "are used (method lora), or take another base model.",
            )

    def end_passes(self) -> None:
        """Keep nothing."""

    def save(self, output: Path, group: ProcessGroup) -> None:
        """Write a complete model folder, see `save_model`."""
        weights = {
            name: gather_whole(parameter.detach()).cpu() for name, parameter in self.trainables.items()
        }
        if group.rank == 0 and self._base_model is not None:
            save_model(self.module, weights, base_model=self._base_model, output=output)


def save_model(
    model: PreTrainedModel, weights: Mapping[str, torch.Tensor], *, base_model: Path, output: Path
) -> None:
    """Write weights, configuration, tokenizer, chat template and generation settings, complete or not at all.

    Weights are stored in the number format of the base, as what is served has it.

    Args:
        model: Decides names and files of the weights.
        weights: The trained parameters by name, on the CPU.
        base_model: Folder that the model was loaded from.
        output: Folder to create.

    Raises:
        TrainingFailed: See `check_saved_model`.
        FileExistsError: If ``output`` exists and is not empty.
    """
    dtype = _stored_dtype(base_model)
    stored = {name: weight.to(dtype) for name, weight in weights.items()}
    # Stored weights of tied layers appear under one name, which transformers looks up by identity.
    for name, other in _tied_names(model).items():
        stored.setdefault(name, stored[other])
    buffers = {name: tensor.cpu() for name, tensor in model.state_dict().items() if name not in stored}
    with atomic_folder(output) as partial:
        copy_companion_files(base_model, partial)
        kept = {name: (partial / name).read_bytes() for name in _CONFIGS if (partial / name).is_file()}
        # save_pretrained gives the tensors their names in files. The configurations that it writes are those
        # in memory, with the training's format and cache setting, so the base's are put back.
        with _without_generation_settings(model):
            model.save_pretrained(partial, state_dict={**stored, **buffers}, safe_serialization=True)
        for name in _CONFIGS:
            (partial / name).unlink(missing_ok=True)
        for name, content in kept.items():
            (partial / name).write_bytes(content)
        check_saved_model(stored, partial, base_model=base_model)


@contextmanager
def _without_generation_settings(model: PreTrainedModel) -> Iterator[None]:
    """Take the generation settings off a model: transformers refuses to write many that models ship with."""
    settings = model.generation_config
    model.generation_config = GenerationConfig()
    try:
        yield
    finally:
        model.generation_config = settings


def check_saved_model(stored: Mapping[str, torch.Tensor], folder: Path, *, base_model: Path) -> None:
    """Compare the saved files with the weights in memory, and with the base.

    Raises:
        TrainingFailed: ``saved-model-differs`` when the files are not what is in memory;
            ``model-not-trained`` when a value is not finite, or nothing differs from the base.
    """
    differing: list[str] = []
    broken: list[str] = []
    base = dict(_list_tensors(base_model))
    saved = dict(_list_tensors(folder))
    changed = False
    for name, file in saved.items():
        tensor = _read_tensor(file, name)
        if name in stored and not torch.equal(tensor, stored[name]):
            differing.append(name)
        if not bool(tensor.isfinite().all()):
            broken.append(name)
        changed = changed or name not in base or not torch.equal(tensor, _read_tensor(base[name], name))
    differing += sorted(base.keys() - saved.keys())
    if differing:
        raise TrainingFailed(
            "saved-model-differs",
            f"The saved model differs from the trained one in {len(differing)} tensors: "
            f"{', '.join(differing[:3])}.",
        )
    if broken or not changed:
        what = (
            f"{len(broken)} tensors are not finite: {', '.join(broken[:3])}"
            if broken
            else (
                "no stored weight differs from the base; the changes may be too small for its number format"
            )
        )
        raise TrainingFailed("model-not-trained", f"The model was not trained: {what}.")


def _has_gradient(parameter: torch.nn.Parameter) -> bool:
    if parameter.grad is None:
        return False
    return bool(gather_whole(parameter.grad.abs().max()) > 0)


def _stored_dtype(base_model: Path) -> torch.dtype:
    """Return the format of the base's largest tensor."""
    sizes: dict[torch.dtype, int] = {}
    for name, file in _list_tensors(base_model):
        tensor = _read_tensor(file, name)
        sizes[tensor.dtype] = sizes.get(tensor.dtype, 0) + tensor.numel()
    return max(sizes, key=lambda dtype: sizes[dtype])


def _tied_names(model: PreTrainedModel) -> dict[str, str]:
    """Return names of weights that are another parameter under a second name."""
    first: dict[int, str] = {id(parameter): name for name, parameter in model.named_parameters()}
    return {
        name: first[id(parameter)]
        for name, parameter in model.named_parameters(remove_duplicate=False)
        if first[id(parameter)] != name
    }


def _list_tensors(folder: Path) -> Iterator[tuple[str, Path]]:
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as opened:
            yield from ((name, file) for name in sorted(opened.keys()))


def _read_tensor(file: Path, name: str) -> torch.Tensor:
    with safe_open(file, framework="pt") as opened:
        tensor: torch.Tensor = opened.get_tensor(name)
    return tensor
