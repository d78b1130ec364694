import json
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from evaluation.engine.adapter_source import adapter_rank, prepare_adapter
from evaluation.engine.errors import EvaluationError


def write_adapter(folder: Path, ranks: tuple[int, ...] = (4, 8)) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {}
    for number, rank in enumerate(ranks):
        tensors[f"base_model.model.layers.{number}.q_proj.lora_A.weight"] = np.zeros((rank, 6), np.float32)
        tensors[f"base_model.model.layers.{number}.q_proj.lora_B.weight"] = np.zeros((6, rank), np.float32)
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text(json.dumps({"r": 4}))
    return folder


def test_the_rank_is_that_of_the_tensors_not_of_the_configuration(tmp_path: Path) -> None:
    assert adapter_rank(write_adapter(tmp_path) / "adapter_model.safetensors") == 8


def test_name_and_path_hold_the_digest(tmp_path: Path) -> None:
    first = prepare_adapter(write_adapter(tmp_path / "a"), tmp_path / "links")
    again = prepare_adapter(write_adapter(tmp_path / "a"), tmp_path / "links")
    other = prepare_adapter(write_adapter(tmp_path / "b", (16,)), tmp_path / "links")
    assert first == again
    assert first.path.name == first.name
    assert (first.path / "adapter_config.json").is_file()
    assert other.name != first.name
    assert other.rank == 16


@pytest.mark.parametrize("content", [b"", b"\xff" * 16, b"\x02\x00\x00\x00\x00\x00\x00\x00[]"])
def test_unreadable_weights_are_refused(tmp_path: Path, content: bytes) -> None:
    weights = write_adapter(tmp_path) / "adapter_model.safetensors"
    weights.write_bytes(content)
    with pytest.raises(EvaluationError) as error:
        prepare_adapter(tmp_path, tmp_path / "links")
    assert error.value.code == "adapter-unreadable"


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"adapter_model\.safetensors and adapter_config\.json"):
        prepare_adapter(tmp_path, tmp_path / "links")
