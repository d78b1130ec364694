import json
from pathlib import Path
from typing import Any

import pytest

from training.engine.errors import BaseModelUnavailable
from training.engine.lint.base_facts import read_base_facts

LLAMA = {
    "model_type": "llama", "hidden_size": 64, "num_attention_heads": 2, "num_hidden_layers": 2,
    "vocab_size": 100, "intermediate_size": 128,
}  # fmt: skip


def write(folder: Path, config: Any) -> Path:
    (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config))
    return folder


@pytest.mark.parametrize(
    ("added", "dtype"),
    [
        ({"dtype": "bfloat16"}, "bfloat16"),
        ({"torch_dtype": "float16"}, "float16"),
        ({"text_config": {"dtype": "float32"}}, "float32"),
        ({}, None),
    ],
)
def test_shape_and_dtype(tmp_path: Path, added: dict[str, Any], dtype: str | None) -> None:
    facts = read_base_facts(write(tmp_path, {**LLAMA, **added}))
    assert facts.shape is not None
    assert (facts.shape.num_layers, facts.dtype, facts.note) == (2, dtype, "")


def test_a_shape_that_cannot_be_told_is_no_error(tmp_path: Path) -> None:
    facts = read_base_facts(write(tmp_path, {"model_type": "mamba", "dtype": "bfloat16"}))
    assert (facts.shape, facts.dtype) == (None, "bfloat16")
    assert "hidden_size" in facts.note


@pytest.mark.parametrize("content", [None, "{", "[]"])
def test_without_a_config_there_are_no_facts(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        write(tmp_path, content)
    with pytest.raises(BaseModelUnavailable) as caught:
        read_base_facts(tmp_path)
    assert caught.value.code == "base-config-unreadable"
