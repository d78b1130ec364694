"""Deliberately wrong merges: each is noticed, and the mistake that made it is named."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from tests.fixtures.adapters import build_random_adapter
from tests.fixtures.models import build_random_llama, random_llama
from tests.training.engine.merge.variants import load_tensors
from tests.training.engine.reporters import RecordingReporter
from training.engine.merge.merger import run_merge
from training.engine.merge.verification import MergeVerification, verify_merge

PROMPTS = ["Hello there, how are you?", "{}"]
# Rank 16 and alpha 24: the scale is 1.5, so that 2, sqrt(16), 1/sqrt(16), 16 and 1/1.5 are all different.
SETTINGS: dict[str, Any] = {"r": 16, "lora_alpha": 24}
Matrices = tuple[torch.Tensor, torch.Tensor]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """A random Llama of two layers in several files, an adapter on all projections, the right merge."""
    root = tmp_path_factory.mktemp("verification")
    # 7 MB hold the embedding alone (49,152 x 64 in bf16), so each layer comes into another file.
    base = build_random_llama(root / "base", max_shard_size="100KB")
    adapter = build_random_adapter(base, root / "adapter", scale=0.1, **SETTINGS)
    merge(base, adapter, root / "merged")
    return base, adapter, root / "merged"


def merge(base: Path, adapter: Path, output: Path) -> None:
    run_merge(base_model=base, adapter=adapter, output=output, report=RecordingReporter())


def deltas(base: Path, adapter: Path) -> dict[str, Matrices]:
    """Return (W, scale * B A) in float32 for each adapted weight."""
    config = json.loads((adapter / "adapter_config.json").read_text())
    factors = load_file(adapter / "adapter_model.safetensors")
    weights = load_tensors(base)
    result = {}
    for name, a in factors.items():
        if name.endswith("lora_A.weight"):
            target = name.removeprefix("base_model.model.").replace("lora_A.weight", "weight")
            scale = config["lora_alpha"] / (len(a) ** 0.5 if config["use_rslora"] else len(a))
            delta = scale * factors[name.replace("lora_A", "lora_B")].float() @ a.float()
            result[target] = weights[target].float(), delta
    return result


def rewrite(merged: Path, output: Path, tensors: dict[str, torch.Tensor]) -> Path:
    """Copy a merged model with some tensors changed."""
    shutil.copytree(merged, output)
    for path in output.glob("model*.safetensors"):
        changed = {name: tensors.get(name, tensor) for name, tensor in load_file(path).items()}
        save_file({name: tensor.contiguous() for name, tensor in changed.items()}, path)
    return output


def codes(report: MergeVerification) -> list[str]:
    return [cause.code for cause in report.causes]


def test_a_right_merge_is_sound(folders: tuple[Path, Path, Path]) -> None:
    base, adapter, merged = folders
    report = verify_merge(base_model=base, adapter=adapter, merged=merged, prompts=PROMPTS)
    assert report.is_sound
    assert (report.num_tensors, report.num_wrong_tensors, report.num_wrong_untouched) == (14, 0, 0)
    assert report.causes == ()
    assert report.layers == ()
    assert report.logits is not None
    assert report.logits.mean_kl_divergence < 1e-3 * report.logits.base_mean_kl_divergence
    assert report.max_off_fraction < 1e-3
    json.dumps(report.to_values())


def scaled(factor: float) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    return lambda weight, delta: (weight + factor * delta).bfloat16()


def rounded_delta(weight: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    return (weight + delta.bfloat16().float()).bfloat16()


def added_in_bf16(weight: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    return weight.bfloat16() + delta.bfloat16()


def added_twice(weight: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    return ((weight + delta).bfloat16().float() + delta).bfloat16()


def another_delta(weight: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    return (weight + delta.roll(1, 0)).bfloat16()


@pytest.mark.parametrize(
    ("mistake", "code"),
    [
        (scaled(4.0), "scale-root-of-rank"),  # alpha / sqrt(16) for alpha / 16
        (scaled(1 / 1.5), "scale-left-out"),
        (scaled(16.0), "scale-not-divided"),
        (scaled(-1.0), "delta-subtracted"),
        (scaled(3.0), "scale-off"),
        (scaled(0.5), "scale-off"),
        (scaled(0.0), "module-unmatched"),
        (added_twice, "merged-twice"),
        (rounded_delta, "delta-rounded"),
        (added_in_bf16, "delta-rounded"),
        (another_delta, "unexplained"),
    ],
)
def test_the_mistake_is_named(
    folders: tuple[Path, Path, Path],
    tmp_path: Path,
    mistake: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    code: str,
) -> None:
    base, adapter, merged = folders
    wrong = rewrite(merged, tmp_path / "wrong", {n: mistake(*wd) for n, wd in deltas(base, adapter).items()})
    report = verify_merge(base_model=base, adapter=adapter, merged=wrong, prompts=())
    assert not report.is_sound
    assert codes(report) == [code]
    assert report.num_wrong_tensors == report.causes[0].num_tensors == 14


def test_the_scale_of_a_rank_stabilised_adapter(tmp_path: Path) -> None:
    base = random_llama()
    adapter = build_random_adapter(base, tmp_path / "adapter", scale=0.1, use_rslora=True, **SETTINGS)
    merge(base, adapter, tmp_path / "merged")
    wrong = rewrite(
        tmp_path / "merged",
        tmp_path / "wrong",
        {name: scaled(0.25)(*pair) for name, pair in deltas(base, adapter).items()},
    )
    report = verify_merge(base_model=base, adapter=adapter, merged=wrong, prompts=PROMPTS)
    assert codes(report) == ["scale-rank-instead-of-root"]


def test_two_mistakes_of_one_factor_are_both_named(tmp_path: Path) -> None:
    """At rank 4 the square root of the rank is 2: a wrong scale and a second merge give the same weights."""
    base = random_llama()
    adapter = build_random_adapter(base, tmp_path / "adapter", scale=0.1)
    merge(base, adapter, tmp_path / "merged")
    wrong = rewrite(
        tmp_path / "merged",
        tmp_path / "wrong",
        {name: scaled(2.0)(*pair) for name, pair in deltas(base, adapter).items()},
    )
    report = verify_merge(base_model=base, adapter=adapter, merged=wrong, prompts=())
    assert set(codes(report)) == {"merged-twice", "scale-root-of-rank"}


def test_a_transposed_delta(folders: tuple[Path, Path, Path], tmp_path: Path) -> None:
    base, adapter, merged = folders
    square = {n: wd for n, wd in deltas(base, adapter).items() if wd[0].shape[0] == wd[0].shape[1]}
    assert len(square) == 4  # q_proj and o_proj of two layers
    wrong = rewrite(merged, tmp_path / "wrong", {n: (w + d.T).bfloat16() for n, (w, d) in square.items()})
    report = verify_merge(base_model=base, adapter=adapter, merged=wrong, prompts=PROMPTS)
    assert codes(report) == ["delta-transposed"]
    assert report.causes[0].num_tensors == 4


def test_the_layers_show_where_it_begins(folders: tuple[Path, Path, Path], tmp_path: Path) -> None:
    base, adapter, merged = folders
    second = {n: w.bfloat16() for n, (w, _) in deltas(base, adapter).items() if "layers.1.mlp.down" in n}
    wrong = rewrite(merged, tmp_path / "wrong", second)
    report = verify_merge(base_model=base, adapter=adapter, merged=wrong, prompts=PROMPTS)
    assert codes(report) == ["module-unmatched"]
    assert set(report.causes[0].tensors) == set(second)
    assert [layer.layer for layer in report.layers] == [0, 1, 2]
    assert report.layers[0].merged_fraction == 0
    assert report.layers[1].merged_fraction < 0.01  # rounding
    assert report.layers[2].merged_fraction > 0.05


def test_a_stale_shard(folders: tuple[Path, Path, Path], tmp_path: Path) -> None:
    base, adapter, merged = folders
    other = build_random_adapter(base, tmp_path / "other", seed=7, scale=0.1, **SETTINGS)
    merge(base, other, tmp_path / "earlier")
    index = json.loads((merged / "model.safetensors.index.json").read_text())["weight_map"]
    shard = index["model.layers.1.mlp.up_proj.weight"]
    for name, source in (("base", base), ("earlier", tmp_path / "earlier")):
        wrong = tmp_path / f"with-{name}"
        shutil.copytree(merged, wrong)
        shutil.copyfile(source / shard, wrong / shard)
        report = verify_merge(base_model=base, adapter=adapter, merged=wrong, prompts=())
        assert codes(report) == ["stale-shard"], name
        assert "model.layers.1.mlp.up_proj.weight" in {
            tensor for tensor, file in index.items() if file == shard
        } & set(report.causes[0].tensors)


def test_another_base(folders: tuple[Path, Path, Path], tmp_path: Path) -> None:
    base, adapter, _ = folders
    other = build_random_llama(tmp_path / "other", seed=5, max_shard_size="100KB")
    merge(other, adapter, tmp_path / "merged")
    report = verify_merge(base_model=base, adapter=adapter, merged=tmp_path / "merged", prompts=PROMPTS)
    assert codes(report) == ["wrong-base"]
    assert report.num_wrong_untouched > 0
    assert report.logits is not None
    assert report.logits.mean_kl_divergence > 0.5 * report.logits.base_mean_kl_divergence


def test_a_lost_file_and_a_stray_tensor(folders: tuple[Path, Path, Path], tmp_path: Path) -> None:
    base, adapter, merged = folders
    stray = rewrite(merged, tmp_path / "stray", {"model.norm.weight": torch.full((64,), 2.0).bfloat16()})
    report = verify_merge(base_model=base, adapter=adapter, merged=stray, prompts=())
    assert (codes(report), report.num_wrong_untouched) == (["wrong-base"], 1)


VARIANTS: list[dict[str, Any]] = [
    {"use_dora": True},
    {"target_modules": ["q_proj", "lm_head"]},
    {"target_modules": ["q_proj"], "modules_to_save": ["lm_head"]},
    {"target_modules": ["q_proj"], "trainable_token_indices": [5, 9]},
]


@pytest.mark.parametrize("settings", VARIANTS)
def test_variants_are_sound(settings: dict[str, Any], tmp_path: Path) -> None:
    base = random_llama()
    adapter = build_random_adapter(base, tmp_path / "adapter", **settings)
    merge(base, adapter, tmp_path / "merged")
    report = verify_merge(base_model=base, adapter=adapter, merged=tmp_path / "merged", prompts=PROMPTS[:1])
    assert report.is_sound, report


def test_dora_without_its_magnitudes(tmp_path: Path) -> None:
    base = random_llama()
    adapter = build_random_adapter(base, tmp_path / "adapter", scale=0.1, use_dora=True, **SETTINGS)
    merge(base, adapter, tmp_path / "merged")
    wrong = rewrite(
        tmp_path / "merged",
        tmp_path / "wrong",
        {name: scaled(1.0)(*pair) for name, pair in deltas(base, adapter).items()},
    )
    report = verify_merge(base_model=base, adapter=adapter, merged=wrong, prompts=())
    assert codes(report) == ["magnitude-left-out"]
