from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry.artifacts.adapter_config import AdapterKind, parse_adapter_config, read_adapter_config
from registry.artifacts.adapter_rules import check_config
from registry.artifacts.errors import AdapterConfigError
from tests.registry.artifacts.builders import lora_config

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def test_plain_lora() -> None:
    config = parse_adapter_config(lora_config(unsloth_version="1"))
    assert config.kind is AdapterKind.LORA
    assert (config.r, config.lora_alpha, config.task_type) == (4, 8.0, "CAUSAL_LM")
    assert config.target_modules is not None
    assert len(config.target_modules) == 7
    assert config.faults == ()
    assert dict(config.unknown) == {"unsloth_version": "1"}
    assert config.raw["unsloth_version"] == "1"


def test_early_peft_and_nulls() -> None:
    raw = {
        "peft_type": "LORA",
        "task_type": None,
        "base_model_name_or_path": None,
        "r": 8,
        "lora_alpha": 16,
        "target_modules": ["q_proj"],
        "enable_lora": None,
        "merge_weights": False,
        "rank_pattern": None,
        "use_rslora": None,
        "layers_to_transform": None,
        "init_lora_weights": None,
    }
    config = parse_adapter_config(raw)
    assert config.faults == ()
    assert config.base_hint is None
    assert config.init_lora_weights is True
    assert config.use_rslora is False
    assert config.unknown == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("r", None),
        ("r", 0),
        ("r", True),
        ("r", "8"),
        ("r", 8.0),
        ("r", 10**30),
        ("lora_alpha", None),
        ("lora_alpha", "16"),
        ("lora_alpha", 1e999),
        ("lora_alpha", 10**400),
        ("target_modules", [1]),
        ("target_modules", {"a": 1}),
        ("rank_pattern", {"q_proj": 0}),
        ("rank_pattern", ["q_proj"]),
        ("alpha_pattern", {"q_proj": "8"}),
        ("layers_to_transform", ["1"]),
        ("layers_to_transform", True),
        ("use_rslora", "yes"),
        ("init_lora_weights", 1.5),
        ("base_model_name_or_path", 7),
        ("bias", None),
    ],
)
def test_wrong_types_are_faults(field: str, value: Any) -> None:
    config = parse_adapter_config(lora_config(**{field: value}))
    assert [finding.where for finding in config.faults] == [f"adapter_config.json: {field}"]


@pytest.mark.parametrize(("value", "expected"), [(3, (3,)), ([1, 2], (1, 2)), ([], None), (None, None)])
def test_layers_to_transform(value: Any, expected: tuple[int, ...] | None) -> None:
    assert parse_adapter_config(lora_config(layers_to_transform=value)).layers_to_transform == expected


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        ({"peft_type": "LORA"}, AdapterKind.LORA),
        ({"peft_type": "lora"}, AdapterKind.LORA),
        ({"peft_type": "PREFIX_TUNING"}, AdapterKind.OTHER_PEFT),
        ({"lora_parameters": {"rank": 8}}, AdapterKind.MLX),
        ({"fine_tune_type": "lora"}, AdapterKind.MLX),
        ({"config": {"phm_layer": True}, "model_class": "X"}, AdapterKind.ADAPTERHUB),
        ({"base_model": "x"}, AdapterKind.UNKNOWN),
        ({}, AdapterKind.UNKNOWN),
        ({"peft_type": None, "r": 8}, AdapterKind.UNKNOWN),
    ],
)
def test_kinds(raw: dict[str, Any], kind: AdapterKind) -> None:
    assert parse_adapter_config(raw).kind is kind


@given(st.dictionaries(st.sampled_from(sorted(lora_config())), JSON))
def test_parsing_and_judging_never_raise(changes: dict[str, Any]) -> None:
    raw = {**lora_config(), **changes}
    for finding in check_config(parse_adapter_config(raw)):
        assert finding.message.isprintable()


@pytest.mark.parametrize("content", ["", "[]", "{", '{"r": NaN}', '{"r": 1, "r": 2}'])
def test_unreadable_files(tmp_path: Path, content: str) -> None:
    path = tmp_path / "adapter_config.json"
    path.write_text(content)
    with pytest.raises(AdapterConfigError):
        read_adapter_config(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(AdapterConfigError):
        read_adapter_config(tmp_path / "adapter_config.json")
