import json
from pathlib import Path

import pytest

from tests.training.engine.memory.test_model_shape import LLAMA2_7B
from training.engine.errors import ConfigInvalid
from training.engine.memory.model_files import read_model_files


def write_weights(path: Path, *sizes: int) -> None:
    """A safetensors file of bf16 vectors; its bytes are a hole in the file."""
    header, end = {}, 0
    for number, size in enumerate(sizes):
        header[f"t{number}"] = {"dtype": "BF16", "shape": [size], "data_offsets": [end, end + 2 * size]}
        end += 2 * size
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA2_7B))
    return tmp_path


def test_a_folder_and_a_file(folder: Path) -> None:
    for path in (folder, folder / "config.json"):
        files = read_model_files(path)
        assert files.config == LLAMA2_7B
        assert files.num_stored_parameters is None


def test_stored_parameters_are_counted_once(folder: Path) -> None:
    write_weights(folder / "model-00001-of-00002.safetensors", 10, 20)
    write_weights(folder / "model-00002-of-00002.safetensors", 5)
    # Mistral's releases hold the same weights once more under this name.
    write_weights(folder / "consolidated.safetensors", 35)
    assert read_model_files(folder).num_stored_parameters == 35


def test_damaged_weights_are_not_counted(folder: Path) -> None:
    write_weights(folder / "model-00001-of-00002.safetensors", 10)
    (folder / "model-00002-of-00002.safetensors").write_bytes(b"short")
    assert read_model_files(folder).num_stored_parameters is None


@pytest.mark.parametrize("text", ["", "[1]", '{"a": NaN}', "\xff\xfe", "[" * 100_000])
def test_what_is_no_json_object(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, encoding="latin-1")
    for place in (path, tmp_path):
        with pytest.raises(ConfigInvalid) as caught:
            read_model_files(place)
        assert caught.value.code == "model-config-unreadable"


def test_a_folder_without_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read_model_files(tmp_path)
    assert caught.value.code == "model-config-missing"
