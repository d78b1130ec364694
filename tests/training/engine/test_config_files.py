import builtins
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from training.engine.config import TrainingConfig
from training.engine.config_files import MAX_CONFIG_BYTES, read_config_object, read_training_config
from training.engine.errors import ConfigInvalid
from training.engine.layer_choice import LayerRange

JSON = """{"method": "lora", "lora": {"r": 8, "layers": {"first": 1, "last": 3}},
 "training": {"learning_rate": 1e-4, "max_steps": null}, "data": {"system_prompt": "把工单整理成 JSON。"}}"""
TOML = """
method = "lora"
[lora]
r = 8
layers = {first = 1, last = 3}
[training]
learning_rate = 1e-4
[data]
system_prompt = "把工单整理成 JSON。"
"""
YAML = """
method: lora
lora:
  r: 8
  layers: {first: 1, last: 3}
training:
  learning_rate: 1e-4   # YAML 1.1 reads this as a text
  max_steps: null
data:
  system_prompt: 把工单整理成 JSON。
"""


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [("c.json", JSON), ("c.toml", TOML), ("c.yaml", YAML), ("c.YML", YAML), ("c.conf", JSON), ("c", JSON)],
)
def test_one_configuration_in_three_forms(tmp_path: Path, name: str, text: str) -> None:
    config = read_training_config(write(tmp_path, name, text))
    assert config.lora.layers == LayerRange(first=1, last=3)
    assert (config.lora.r, config.lora.lora_alpha, config.training.learning_rate) == (8, 16, 1e-4)
    assert config.data.system_prompt == "把工单整理成 JSON。"
    assert config == TrainingConfig.from_json(read_config_object(write(tmp_path, "again.json", JSON)))


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("2e-4", 2e-4), ("2.0e-4", 2e-4), ("2E-4", 2e-4), ("-.5", -0.5), ("1.", 1.0), ("1e3", 1000.0),
        ("16", 16), ("-3", -3), ("'2e-4'", "2e-4"), ("none", "none"), ("true", True), ("1e", "1e"),
    ],
)  # fmt: skip
def test_numbers_in_yaml(tmp_path: Path, written: str, value: object) -> None:
    read = read_config_object(write(tmp_path, "c.yaml", f"a: {written}"))["a"]
    assert (read, type(read)) == (value, type(value))


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("c.json", '{"lora": {"r": 8,}}', "line 1 column 18"),
        ("c.json", '{"lora": {"r": 8, "r": 16}}', "r"),
        ("c.json", '{"training": {"learning_rate": NaN}}', "NaN"),
        ("c.json", "[1]", "not a JSON object"),
        ("c.json", "[" * 100_000, "JSON"),
        ("c.toml", "[lora]\nr = 8\nr = 16\n", "line 3"),
        ("c.toml", "[lora\n", "line 1"),
        ("c.yaml", "lora:\n  r: 8\n  r: 16\n", "the key r is written twice in line 2, column 3"),
        ("c.yaml", "lora: {r: 8\n", "line 2"),
        ("c.yaml", "lora: !!python/object/apply:os.getcwd []", "in line 1, column 7"),
        ("c.yaml", "- 1", "no object"),
        ("c.yaml", "", "no object"),
        ("c.json", " " * (MAX_CONFIG_BYTES + 1), "larger than"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place(
    tmp_path: Path, name: str, text: str, reason: str
) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        read_config_object(write(tmp_path, name, text))
    assert caught.value.code == "config-unreadable"
    assert reason in caught.value.message


def test_bytes_that_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(b"\xff\xfe")
    for name in ("c.toml", "missing.toml"):
        with pytest.raises(ConfigInvalid) as caught:
            read_config_object(tmp_path / name)
        assert caught.value.code == "config-unreadable"


def test_all_faults_of_a_file_come_at_once(tmp_path: Path) -> None:
    path = write(
        tmp_path, "c.toml", '[lora]\nr = 0\nlayers = "first"\n[training]\nlr = nan\nseed = 2026-01-01\n'
    )
    with pytest.raises(ConfigInvalid) as caught:
        read_training_config(path)
    assert {fault.where for fault in caught.value.faults} == {
        "lora.r", "lora.layers", "training.lr", "training.seed"
    }  # fmt: skip


def test_without_pyyaml_the_other_forms_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without_yaml(
        name: str,
        globals: Mapping[str, object] | None = None,
        locals: Mapping[str, object] | None = None,
        fromlist: Sequence[str] | None = (),
        level: int = 0,
    ) -> Any:
        if name == "yaml":
            raise ImportError("No module named 'yaml'")
        return original(name, globals, locals, fromlist, level)

    monkeypatch.setattr(builtins, "__import__", without_yaml)
    with pytest.raises(ConfigInvalid, match="TOML or JSON") as caught:
        read_config_object(write(tmp_path, "c.yaml", YAML))
    assert caught.value.code == "yaml-not-installed"
    assert read_config_object(write(tmp_path, "c.toml", TOML))["method"] == "lora"
