import builtins
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from client.configuration_file import read_configuration
from client.errors import UsageError
from training.engine.config_files import read_config_object


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.json", '{"lora": {"r": 8}, "training": {"learning_rate": 2e-4}}'),
        ("c.toml", "[lora]\nr = 8\n[training]\nlearning_rate = 2e-4\n"),
        ("c.yaml", "lora:\n  r: 8\ntraining:\n  learning_rate: 2e-4\n"),
        ("c.yml", "lora: {r: 8}\ntraining: {learning_rate: 2e-4}\n"),
        ("c.conf", '{"lora": {"r": 8}, "training": {"learning_rate": 2e-4}}'),
    ],
)
def test_three_forms_read_as_the_engine_reads_them(tmp_path: Path, name: str, text: str) -> None:
    path = write(tmp_path, name, text)
    assert read_configuration(path) == {"lora": {"r": 8}, "training": {"learning_rate": 2e-4}}
    assert read_configuration(path) == read_config_object(path)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("c.json", "{", "line 1"),
        ("c.toml", "[lora\n", "line 1"),
        ("c.yaml", "lora: {r: 8\n", "line 2"),
        ("c.yaml", "- 1", "object"),
        ("c.toml", "a = 2026-01-01", "JSON cannot say"),
        ("c.yaml", "a: .nan", "JSON cannot say"),
    ],
)
def test_faults_name_their_place(tmp_path: Path, name: str, text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        read_configuration(write(tmp_path, name, text))


def test_a_file_that_is_no_text_or_not_there(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_bytes(b"\xff")
    for name in ("c.toml", "missing.yaml"):
        with pytest.raises(UsageError):
            read_configuration(tmp_path / name)


def test_the_base_install_has_no_yaml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
    with pytest.raises(
        UsageError, match="pip install pyyaml, or write the configuration as TOML or JSON"
    ) as caught:
        read_configuration(write(tmp_path, "c.yaml", "a: 1"))
    assert caught.value.code == "yaml-not-installed"
    assert read_configuration(write(tmp_path, "c.toml", "a = 1")) == {"a": 1}
