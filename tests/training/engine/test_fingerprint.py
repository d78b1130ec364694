import hashlib
import json
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from registry.artifacts.digests import digest_json
from registry.artifacts.manifest import ArtifactFile, ArtifactManifest
from training.engine.config import TrainingConfig
from training.engine.errors import DataInvalid
from training.engine.fingerprint import Fingerprint, digest_folder, list_libraries, take_fingerprint

CHANGES: dict[str, Any] = {
    "training_data": {"train.jsonl": "a" * 64},
    "holdout": {"holdout.jsonl": "b" * 64},
    "base_model": "c" * 64,
    "chat_template_sha256": None,
    "config": {"method": "qlora"},
    "code_version": "train@2",
    "libraries": {"python": "3.12.0"},
}


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def base(tmp_path: Path) -> Path:
    write(tmp_path / "base" / "config.json", "{}")
    write(tmp_path / "base" / "sub" / "weights.bin", "w")
    write(tmp_path / "base" / "tokenizer_config.json", json.dumps({"chat_template": "{{ 工单 }}"}))
    return tmp_path / "base"


@pytest.fixture
def fingerprint(tmp_path: Path, base: Path) -> Fingerprint:
    write(tmp_path / "data" / "a@1.jsonl", "one")
    write(tmp_path / "data" / "general" / "g@1.jsonl", "two")
    return take_fingerprint(
        base_model=base,
        training_data=tmp_path / "data",
        holdout=write(tmp_path / "held" / "holdout.jsonl", "three"),
        config=TrainingConfig(),
        code_version="train@1",
    )


def test_it_covers_every_input(fingerprint: Fingerprint) -> None:
    assert fingerprint.training_data == {"a@1.jsonl": sha256("one"), "general/g@1.jsonl": sha256("two")}
    assert fingerprint.holdout == {"holdout.jsonl": sha256("three")}
    assert fingerprint.chat_template_sha256 == sha256("{{ 工单 }}")
    assert fingerprint.config == TrainingConfig().to_json()
    assert fingerprint.libraries["torch"] == metadata.version("torch")
    assert {"python", "torch", "transformers", "peft", "safetensors", "tokenizers"} == set(
        fingerprint.libraries
    )


def test_the_base_is_named_as_the_registry_names_its_artifact(base: Path) -> None:
    files = [
        ArtifactFile(path.relative_to(base).as_posix(), path.stat().st_size, sha256(path.read_text()))
        for path in base.rglob("*")
        if path.is_file()
    ]
    assert digest_folder(base) == ArtifactManifest.of(files).digest


@pytest.mark.parametrize("part", CHANGES)
def test_every_part_changes_the_digest(fingerprint: Fingerprint, part: str) -> None:
    assert replace(fingerprint, **{part: CHANGES[part]}).digest != fingerprint.digest


def test_the_digest_can_be_computed_again_from_what_is_stored(fingerprint: Fingerprint) -> None:
    stored = json.loads(json.dumps(fingerprint.to_json()))
    digest = stored.pop("digest")
    assert digest == digest_json(stored) == fingerprint.digest
    reordered = dict(reversed(fingerprint.libraries.items()))
    assert replace(fingerprint, libraries=reordered).digest == digest


def test_parts_that_are_not_there(tmp_path: Path) -> None:
    base = write(tmp_path / "bare" / "config.json", "{}").parent
    data = write(tmp_path / "train.jsonl", "one")
    taken = take_fingerprint(
        base_model=base, training_data=data, holdout=None, config=TrainingConfig(), code_version="train@1"
    )
    assert (taken.holdout, taken.chat_template_sha256) == ({}, None)
    with pytest.raises(DataInvalid):
        take_fingerprint(
            base_model=base, training_data=base, holdout=None, config=TrainingConfig(), code_version="train@1"
        )


def test_libraries_that_are_not_installed_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        if name == "peft":
            raise metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(metadata, "version", version)
    assert "peft" not in list_libraries("lora")
    assert "bitsandbytes" not in list_libraries("lora")
    assert list_libraries("qlora")["bitsandbytes"] == "1.0"
