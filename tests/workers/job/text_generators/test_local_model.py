import shutil
from pathlib import Path

import pytest

from client.base_model_folder import select_base_model_files
from client.uploads import hash_files
from evaluation.engine.errors import PromptError
from tests.fixtures.models import random_llama
from workers.job.errors import StepRefused
from workers.job.text_generators.local_model import digest_model_files, open_model


def test_the_digest_is_that_of_the_registered_base_model() -> None:
    registered = hash_files(select_base_model_files(random_llama()).sources).manifest.digest
    assert digest_model_files(random_llama()) == registered


def test_other_weights_have_another_digest_and_hidden_files_do_not_count(tmp_path: Path) -> None:
    folder = shutil.copytree(random_llama(), tmp_path / "model")
    (folder / ".cache").mkdir()
    (folder / ".gitattributes").write_text("x")
    before = open_model(folder)
    assert (before.name, before.digest) == ("model", digest_model_files(random_llama()))
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"\x7f")
    assert digest_model_files(folder) != before.digest


@pytest.mark.parametrize("missing", ["config.json", "model.safetensors"])
def test_a_folder_without_configuration_or_safetensors_is_no_model(missing: str, tmp_path: Path) -> None:
    folder = shutil.copytree(random_llama(), tmp_path / "model")
    (folder / missing).unlink()
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(StepRefused) as refused:
        open_model(folder)
    assert refused.value.code == "model-unusable"


def test_a_template_that_refuses_everything_is_known_at_once(tmp_path: Path) -> None:
    folder = shutil.copytree(random_llama(), tmp_path / "model")
    template = folder / "chat_template.jinja"
    template.write_text("{{ raise_exception('never') }}" + template.read_text())
    with pytest.raises(PromptError, match="never"):
        open_model(folder)
