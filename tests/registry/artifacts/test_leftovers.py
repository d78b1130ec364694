import pytest

from registry.artifacts.leftovers import file_reason, folder_reason, is_adapter_file, is_tool_folder


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("adapter_config.json", True),
        ("tokenizer.model", True),
        ("LICENSE", True),
        ("additional_chat_templates/tool.jinja", True),
        ("additional_chat_templates/x/tool.jinja", False),
        ("additional_chat_templates/tool.py", False),
        ("checkpoint-1/adapter_config.json", False),
        ("adapter_model.bin", False),
        ("config.json", False),
        ("tokenizer.json.bak", False),
    ],
)
def test_the_allow_list(path: str, expected: bool) -> None:
    assert is_adapter_file(path) is expected


def test_reasons() -> None:
    assert file_reason("Optimizer.PT") == "optimizer state"
    assert file_reason("something.else") == "not part of an adapter"
    assert folder_reason("checkpoint-39") == "intermediate checkpoint"
    assert is_tool_folder(".git")
    assert not is_tool_folder("checkpoint-39")
