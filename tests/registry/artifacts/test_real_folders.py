"""The intake's answer to 35 real adapter folders: their published configurations and file names."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from registry.artifacts.adapter_config import AdapterKind, parse_adapter_config
from registry.artifacts.adapter_folder import select_adapter_files
from registry.artifacts.adapter_rules import check_config

SHARED = Path(os.environ.get("ASSAY_SHARED", Path(__file__).parents[4] / "shared"))
FOLDER = SHARED / "cases" / "adapter_folders"
CASES = sorted(FOLDER.glob("*.json")) if FOLDER.is_dir() else []

pytestmark = pytest.mark.skipif(not CASES, reason=f"the shared cases are not at {FOLDER} (set ASSAY_SHARED)")

# Errors by the configuration alone, without a base model; folders that are not named have none.
EXPECTED_ERRORS = {
    "06-whisper-large-v3-turbo": {"adapter-not-causal-lm"},
    "08-esm2-token-cls": {"adapter-not-causal-lm"},
    "10-lerobot-bare-config": {"adapter-not-peft"},
    "12-bloom-enable-lora": {"adapter-enable-lora"},
    "16-t5-small-seq2seq": {"adapter-not-causal-lm"},
    "22-colpali-regex-targets": {"adapter-not-causal-lm"},
    "24-chatglm-prefix-tuning": {"adapter-not-lora"},
    "30-blip2-base-null-nested": {"adapter-double-wrapped"},
    "36-diffusion-rank-pattern": {"adapter-not-causal-lm"},
    "38-adapterhub-compacter-xlmr": {"adapter-adapterhub"},
    "42-mlx-minimal": {"adapter-mlx"},
    "50-privacy-filter-token-cls": {"adapter-not-causal-lm"},
    "54-mlx-local-model-resume": {"adapter-mlx"},
    "58-bert-seqcls-indonesian": {"adapter-not-causal-lm"},
    "68-indictrans2-seq2seq": {"adapter-not-causal-lm"},
}
QUANTISED = {"44-llama3-unsloth-bnb", "62-qwen3-unsloth-checkpoint"}
KINDS = {
    "10-lerobot-bare-config": AdapterKind.UNKNOWN,
    "24-chatglm-prefix-tuning": AdapterKind.OTHER_PEFT,
    "38-adapterhub-compacter-xlmr": AdapterKind.ADAPTERHUB,
    "42-mlx-minimal": AdapterKind.MLX,
    "54-mlx-local-model-resume": AdapterKind.MLX,
}


def load(path: Path) -> dict[str, Any]:
    case: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return case


def test_all_cases_are_there() -> None:
    assert len(CASES) == 35
    assert EXPECTED_ERRORS.keys() | KINDS.keys() | QUANTISED <= {path.stem for path in CASES}


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_each_configuration_gets_its_answer(path: Path) -> None:
    config = parse_adapter_config(load(path)["adapter_config"])
    assert config.kind is KINDS.get(path.stem, AdapterKind.LORA)
    assert config.faults == ()
    assert config.unknown == {} or config.kind is not AdapterKind.LORA
    findings = check_config(config)
    errors = {finding.code for finding in findings if finding.severity == "error"}
    assert errors == EXPECTED_ERRORS.get(path.stem, set())
    assert all(finding.remedy for finding in findings if finding.severity == "error")
    is_quantised = any(finding.code == "adapter-base-hint-quantised" for finding in findings)
    assert is_quantised is (path.stem in QUANTISED)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_each_folder_is_selected(path: Path, tmp_path: Path) -> None:
    case = load(path)
    for name in case["files"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / "adapter_config.json").write_text(json.dumps(case["adapter_config"]), encoding="utf-8")
    selection = select_adapter_files(tmp_path)
    codes = {finding.code for finding in selection.findings}
    if path.stem == "30-blip2-base-null-nested":
        assert codes == {"adapter-ambiguous"}
        assert selection.candidates == (".", "run10", "run7")
        return
    sent = {file.path for file in selection.files}
    left_out = {name for name, _ in selection.left_out}
    assert "adapter_config.json" in sent
    for name in case["files"]:
        assert name in sent or name in left_out or f"{name.split('/')[0]}/" in left_out
        assert not (name in sent and name.endswith((".bin", ".pt", ".pth", ".py", ".pyc", ".zip", ".ipynb")))
    is_lora = parse_adapter_config(case["adapter_config"]).kind is AdapterKind.LORA
    has_pickle, has_safetensors = (f"adapter_model.{end}" in case["files"] for end in ("bin", "safetensors"))
    assert ("weights-pickle-only" in codes) is (is_lora and has_pickle and not has_safetensors)
    assert ("weights-missing" in codes) is (is_lora and not has_pickle and not has_safetensors)
