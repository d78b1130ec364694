import json
from pathlib import Path
from typing import Any

import pytest

from registry.artifacts.adapter_check import TargetForm, check_adapter, inspect_adapter_config
from registry.artifacts.adapter_config import parse_adapter_config
from registry.artifacts.adapter_serving import round_up_rank
from registry.artifacts.errors import BaseModelError
from tests.registry.artifacts.builders import (
    llama_shapes,
    lora_config,
    lora_shapes,
    make_adapter,
    make_base,
    write_json,
)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return make_base(tmp_path / "base")


def error_codes(adapter: Path, base: Path, form: str = "merged") -> set[str]:
    check = check_adapter(adapter, base, form)
    assert not check.ok
    return {finding.code for finding in check.findings if finding.severity == "error"}


@pytest.mark.parametrize("form", list(TargetForm))
@pytest.mark.parametrize("dtype", ["F32", "F16", "BF16"])
def test_a_good_adapter(tmp_path: Path, base: Path, form: TargetForm, dtype: str) -> None:
    check = check_adapter(make_adapter(tmp_path / "adapter", lora_shapes(dtype=dtype)), base, form)
    assert check.ok
    assert [finding.code for finding in check.findings] == ["adapter-base-hint"]
    assert check.summary is not None
    assert check.summary.num_modules == 14
    assert check.summary.num_tensors == 28
    # By hand: r = 4 times (d_in + d_out) = 16 + 12 + 12 + 16 + 24 + 24 + 24 = 128 a layer, two layers.
    assert check.summary.num_parameters == 4 * 128 * 2
    assert check.summary.ranks == (4,)
    assert check.summary.scalings == (2.0,)
    assert check.summary.max_lora_rank == 8
    assert check.summary.dtypes == (dtype,)
    assert check.summary.target_modules == (
        "down_proj",
        "gate_proj",
        "k_proj",
        "o_proj",
        "q_proj",
        "up_proj",
        "v_proj",
    )
    values = json.loads(json.dumps(check.to_json()))
    assert values["ok"] is True
    assert values["summary"]["target_form"] == form.value


def test_all_faults_of_all_kinds_at_once(tmp_path: Path, base: Path) -> None:
    shapes = lora_shapes(num_layers=3)
    del shapes["base_model.model.model.layers.0.mlp.up_proj.lora_A.weight"]
    shapes["base_model.model.model.layers.1.mlp.up_proj.lora_magnitude_vector"] = ("F32", (16,))
    adapter = make_adapter(tmp_path / "adapter", shapes, use_dora=True, bias="all", lora_alpha="8")
    assert error_codes(adapter, base) == {
        "vllm-cannot-serve-adapter-form",  # for the bias and for DoRA
        "adapter-config-field-invalid",
        "tensor-pair-incomplete",
        "tensor-missing",  # all other magnitudes
        "module-unknown",
    }


def test_many_faults_of_one_kind_are_counted(tmp_path: Path) -> None:
    base = make_base(tmp_path / "base", llama_shapes(hidden=16))
    check = check_adapter(make_adapter(tmp_path / "adapter", lora_shapes(num_layers=4)), base)
    mismatches = [finding for finding in check.findings if finding.code == "module-unknown"]
    assert len(mismatches) == 14
    shapes = [finding for finding in check.findings if finding.code == "shape-mismatch"]
    assert len(shapes) == 14
    deep = check_adapter(make_adapter(tmp_path / "deep", lora_shapes(num_layers=10)), base)
    unknown = [finding for finding in deep.findings if finding.code == "module-unknown"]
    assert len(unknown) == 21  # 20 and the count of the rest: 8 layers x 7 = 56
    assert unknown[-1].message.startswith("36 more")


@pytest.mark.parametrize(
    ("damage", "code"),
    [
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "safetensors-truncated"),
        (lambda path: path.write_bytes(path.read_bytes()[:100]), "safetensors-truncated"),
        (lambda path: path.write_bytes(b"\xff" * 64), "safetensors-header-too-large"),
        (lambda path: path.write_bytes(b"PK\x03\x04" + bytes(100)), "safetensors-truncated"),
        (lambda path: path.write_bytes(b""), "safetensors-truncated"),
        (lambda path: path.unlink(), "weights-missing"),
        (lambda path: path.rename(path.with_name("adapter_model.bin")), "weights-pickle-only"),
        (
            lambda path: path.write_text(
                "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
            ),
            "weights-lfs-pointer",
        ),
    ],
)
def test_damaged_weights(tmp_path: Path, base: Path, damage: Any, code: str) -> None:
    adapter = make_adapter(tmp_path / "adapter")
    damage(adapter / "adapter_model.safetensors")
    assert error_codes(adapter, base) == {code}


def test_a_pickle_is_refused_with_the_way_to_convert_it(tmp_path: Path, base: Path) -> None:
    adapter = make_adapter(tmp_path / "adapter")
    (adapter / "adapter_model.safetensors").rename(adapter / "adapter_model.bin")
    finding = next(
        item for item in check_adapter(adapter, base).findings if item.code == "weights-pickle-only"
    )
    assert finding.remedy is not None
    assert "weights_only=True" in finding.remedy


def test_an_unreadable_configuration(tmp_path: Path, base: Path) -> None:
    adapter = make_adapter(tmp_path / "adapter")
    (adapter / "adapter_config.json").write_text("{")
    check = check_adapter(adapter, base)
    assert [finding.code for finding in check.findings] == ["adapter-config-unreadable"]
    assert check.summary is None
    assert check.to_json()["summary"] == {}


def test_other_kinds_stop_before_the_weights(tmp_path: Path, base: Path) -> None:
    adapter = make_adapter(tmp_path / "adapter")
    write_json(adapter / "adapter_config.json", {"lora_parameters": {"rank": 8}, "num_layers": 4})
    (adapter / "adapter_model.safetensors").unlink()
    check = check_adapter(adapter, base)
    assert [finding.code for finding in check.findings] == ["adapter-mlx"]
    assert check.summary is not None
    assert check.summary.kind == "mlx"


def test_the_base_decides_about_the_output_layer(tmp_path: Path) -> None:
    shapes = {
        "base_model.model.lm_head.lora_A.weight": ("F32", (4, 8)),
        "base_model.model.lm_head.lora_B.weight": ("F32", (32, 4)),
    }
    adapter = make_adapter(tmp_path / "adapter", shapes, target_modules=["lm_head"])
    tied = make_base(tmp_path / "tied")
    untied = make_base(tmp_path / "untied", tie_word_embeddings=False)
    for base, is_untied in ((tied, True), (untied, False)):
        check = check_adapter(adapter, base)
        assert check.ok
        assert [module.base_tensor for module in check.modules] == ["lm_head.weight"]
        assert check.changes.embedding.is_untied is is_untied


@pytest.mark.parametrize(
    ("rank", "rounded"), [(1, 1), (2, 8), (16, 16), (65, 128), (257, 320), (512, 512), (513, None)]
)
def test_ranks_are_rounded_up_to_what_vllm_allows(rank: int, rounded: int | None) -> None:
    assert round_up_rank(rank) == rounded


def test_a_rank_too_large_for_vllm(tmp_path: Path, base: Path) -> None:
    adapter = make_adapter(tmp_path / "adapter", lora_shapes(rank=513), r=513)
    assert error_codes(adapter, base) == {"rank-too-large"}
    assert check_adapter(adapter, base, is_adapter_form_needed=False).ok
    # vLLM looks at every rank that the configuration names, used or not.
    unused = make_adapter(tmp_path / "unused", lora_shapes(), rank_pattern={"nowhere": 600})
    assert error_codes(unused, base) == {"rank-too-large"}


def test_patterns_that_are_not_run_stop_the_matching(tmp_path: Path, base: Path) -> None:
    adapter = make_adapter(tmp_path / "adapter", target_modules="(model.*)*q_proj")
    assert error_codes(adapter, base) == {"adapter-pattern-invalid"}


def test_a_faulty_base_is_not_the_adapters_fault(tmp_path: Path, base: Path) -> None:
    (base / "model.safetensors").unlink()
    with pytest.raises(BaseModelError):
        check_adapter(make_adapter(tmp_path / "adapter"), base)


def test_inspection_without_a_base() -> None:
    codes = [
        finding.code for finding in inspect_adapter_config(parse_adapter_config(lora_config(use_dora=True)))
    ]
    assert codes == ["adapter-dora", "vllm-cannot-serve-adapter-form", "adapter-base-hint"]
