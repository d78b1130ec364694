"""Adapters whose files are damaged, cut off, or something else altogether: each is refused for its reason."""

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from registry.artifacts.adapter_check import check_adapter
from tests.registry.artifacts.builders import lora_config, make_adapter, make_base, write_raw


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("damage") / "base")


def errors_of(adapter: Path, base: Path) -> set[str]:
    check = check_adapter(adapter, base, is_adapter_form_needed=False)
    return {finding.code for finding in check.findings if finding.severity == "error"}


def overwrite(path: Path, data: bytes) -> None:
    path.write_bytes(data)


FILE_CASES: list[tuple[str, Callable[[Path], object], str]] = [
    ("no weights", lambda path: path.unlink(), "weights-missing"),
    ("only a pickle", lambda path: path.rename(path.with_suffix(".bin")), "weights-pickle-only"),
    (
        "git-lfs pointer",
        lambda path: overwrite(path, b"version https://git-lfs.github.com/spec/v1\n"),
        "weights-lfs-pointer",
    ),
    ("nothing in it", lambda path: overwrite(path, b""), "safetensors-truncated"),
    ("cut in the header", lambda path: overwrite(path, path.read_bytes()[:100]), "safetensors-truncated"),
    ("cut in the tensors", lambda path: overwrite(path, path.read_bytes()[:-1]), "safetensors-truncated"),
    ("bytes too many", lambda path: overwrite(path, path.read_bytes() + b"\0"), "safetensors-trailing-bytes"),
    (
        "huge header",
        lambda path: overwrite(path, struct.pack("<Q", 1 << 60) + b"{}"),
        "safetensors-header-too-large",
    ),
    (
        "a web page",
        lambda path: overwrite(path, b"<!DOCTYPE html><html></html>"),
        "safetensors-header-too-large",
    ),
    ("no JSON", lambda path: write_raw(path, "{nonsense"), "safetensors-header-invalid"),
    (
        "a name twice",
        lambda path: write_raw(
            path,
            '{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},'
            '"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}',
        ),
        "safetensors-duplicate-name",
    ),
    (
        "unknown dtype",
        lambda path: write_raw(path, {"a": {"dtype": "X", "shape": [0], "data_offsets": [0, 0]}}),
        "safetensors-dtype-unknown",
    ),
    (
        "overlap",
        lambda path: write_raw(
            path,
            {
                "a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                "b": {"dtype": "F32", "shape": [2], "data_offsets": [4, 12]},
            },
            bytes(12),
        ),
        "safetensors-offsets-invalid",
    ),
    (
        "no configuration",
        lambda path: (path.parent / "adapter_config.json").unlink(),
        "adapter-config-unreadable",
    ),
    (
        "half a configuration",
        lambda path: overwrite(path.parent / "adapter_config.json", json.dumps(lora_config()).encode()[:40]),
        "adapter-config-unreadable",
    ),
    (
        "not peft's",
        lambda path: overwrite(path.parent / "adapter_config.json", b'{"rank": 8}'),
        "adapter-not-peft",
    ),
]


@pytest.mark.parametrize(("damage", "code"), [c[1:] for c in FILE_CASES], ids=[c[0] for c in FILE_CASES])
def test_damaged_files(tmp_path: Path, base: Path, damage: Callable[[Path], object], code: str) -> None:
    adapter = make_adapter(tmp_path / "adapter")
    damage(adapter / "adapter_model.safetensors")
    assert errors_of(adapter, base) == {code}
