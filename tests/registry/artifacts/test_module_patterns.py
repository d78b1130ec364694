import re
import time
from typing import Any

import pytest

from registry.artifacts.adapter_config import parse_adapter_config
from registry.artifacts.module_patterns import find_pattern_fault, is_target, layer_index, match_first
from tests.registry.artifacts.builders import lora_config

Q0 = "model.layers.0.self_attn.q_proj"


@pytest.mark.parametrize(
    "pattern",
    [
        "q_proj",
        r"(.*(language_model).*(down_proj|gate_proj|up_proj|k_proj|q_proj|v_proj|o_proj).*$|.*(custom_text_proj).*$)",
        ".*(audio_tower|vision_tower|embed_vision|embed_audio).*",
        r"^model\.decoder\.layers\.0\.encoder_attn\.k_proj",
        # what unsloth writes
        r"(?:.*?(?:vision|image|language|text).*?(?:self_attn|attention|mlp|ffn|dense).*?(?:k_proj|v_proj).*?)"
        r"|(?:\bmodel\.layers\.[\d]{1,}\.(?:self_attn|mlp)\.(?:(?:k_proj|v_proj)))",
        r"model\.layers\.(1[6-9]|2\d|3[01])\..*",
        r"[(+*]+x",
        r"(?P<layer>\d+)?x",
        r"(?:model\.)*x",
        r"model\.layers\.(?:\d|1\d|2[0-3])\.self_attn\.(?:q|k|v|o)_proj",
        r".*a.*b|.*c.*d|.*e.*f|.*g.*h",
        "(?:[a-z]{2}_){3}",
        r"\(a+\)+b",
    ],
)
def test_real_patterns_are_fine(pattern: str) -> None:
    assert find_pattern_fault(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a|a)*$",
        "((a*)b?)*",
        "(?:a{1,})*",
        "(a|b|ab)+c",
        "([a-z]+)*x",
        "(a+){2,}",
        "(a+){1,5000}",
        "([a-z.]{1,99}){1,99}X",
        "(a?a?)*b",
        "([a-z]{1,2}[a-z]{1,2})*X",
        "(?:(?:a|.*b){1,2}a{2})X",
        "(?P<n>a+)*",
        "(?i)(?:a+?)+",
        "(",
        "a" * 4_001,
        ".*" * 6,
    ],
)
def test_patterns_that_are_not_run(pattern: str) -> None:
    assert find_pattern_fault(pattern) is not None


def test_a_refused_pattern_really_is_slow() -> None:
    """The reason of the rule: 2**n steps."""
    start = time.perf_counter()
    re.fullmatch("(a+)+b", "a" * 22)
    assert time.perf_counter() - start > 0.01


@pytest.mark.parametrize(
    ("changes", "module", "expected"),
    [
        ({"target_modules": ["q_proj"]}, Q0, True),
        ({"target_modules": ["proj"]}, Q0, False),  # whole parts of the name only
        ({"target_modules": ["self_attn.q_proj"]}, Q0, True),
        ({"target_modules": [Q0]}, Q0, True),
        ({"target_modules": "q_proj"}, Q0, False),  # a text is a regular expression for the full name
        ({"target_modules": r".*\.q_proj"}, Q0, True),
        ({"target_modules": None}, Q0, False),
        ({"target_modules": "all-linear"}, Q0, True),
        ({"target_modules": "all-linear"}, "lm_head", False),
        ({"target_modules": ["q_proj"], "exclude_modules": r".*layers\.0.*"}, Q0, False),
        ({"target_modules": ["q_proj"], "exclude_modules": ["self_attn.q_proj"]}, Q0, False),
        ({"target_modules": ["q_proj"], "exclude_modules": []}, Q0, True),
        ({"target_modules": ["q_proj"], "layers_to_transform": [0]}, Q0, True),
        ({"target_modules": ["q_proj"], "layers_to_transform": [1]}, Q0, False),
        ({"target_modules": [Q0], "layers_to_transform": [1]}, Q0, True),
        ({"target_modules": ["q_proj"], "layers_to_transform": 0, "layers_pattern": "layers"}, Q0, True),
        ({"target_modules": ["q_proj"], "layers_to_transform": 0, "layers_pattern": "h"}, Q0, False),
    ],
)
def test_is_target(changes: dict[str, Any], module: str, expected: bool) -> None:
    assert is_target(parse_adapter_config(lora_config(**changes)), module) is expected


def test_the_first_pattern_counts() -> None:
    patterns = {"q_proj": 2, r"layers\.0\.self_attn\.q_proj": 3}
    assert match_first(patterns, Q0) == 2
    assert match_first({"proj": 2}, Q0) is None
    assert match_first({}, Q0) is None


def test_layer_index_takes_the_first_number() -> None:
    assert layer_index("model.layers.11.mlp.experts.3.up_proj") == 11
    assert layer_index("lm_head") is None
