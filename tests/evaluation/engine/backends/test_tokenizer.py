from pathlib import Path

import pytest

from evaluation.engine.backends.tokenizer import load_tokenizer
from evaluation.engine.errors import PromptError
from evaluation.engine.prompts import build_chat_format
from tests.fixtures.models import random_llama


def test_a_model_folders_tokenizer_has_its_chat_template() -> None:
    assert "<|im_start|>" in build_chat_format(load_tokenizer(random_llama())).template


def test_a_folder_without_tokenizer_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PromptError) as error:
        load_tokenizer(tmp_path)
    assert error.value.code == "tokenizer-unreadable"
