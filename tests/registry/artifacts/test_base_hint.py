import pytest

from registry.artifacts.base_hint import is_local_path, is_quantised_name


@pytest.mark.parametrize(
    "name",
    [
        "/root/autodl-tmp/models/glm-4-9b-chat",
        "../../Llama2-7b-chat/",
        "./models/x",
        "C:\\models\\x",
        "~/x",
        "a/b/c",
    ],
)
def test_local_paths(name: str) -> None:
    assert is_local_path(name)


@pytest.mark.parametrize(
    "name", ["meta-llama/Meta-Llama-3.1-70B-Instruct", "t5-small", "models/mistral-7b-openorca"]
)
def test_names_that_may_be_on_a_hub(name: str) -> None:
    assert not is_local_path(name)


@pytest.mark.parametrize(
    "name", ["unsloth/llama-3-8b-Instruct-bnb-4bit", "TheBloke/x-GPTQ", "x-AWQ", "a-8bit", "m-int4"]
)
def test_quantised_names(name: str) -> None:
    assert is_quantised_name(name)
    assert not is_quantised_name("Qwen/Qwen1.5-0.5B-Chat")
