from dataclasses import replace
from typing import Any

import pytest

from registry.artifacts.findings import Severity
from tests.training.engine.lint.plans import SEVEN_B, find, make_data, make_plan, severity_of
from training.engine.config import DEFAULT_TARGET_MODULES

WARNING, ERROR, INFO = Severity.WARNING, Severity.ERROR, Severity.INFO


def test_dora_is_trained_but_not_merged() -> None:
    finding = find(make_plan(lora={"use_dora": True}), "dora-not-mergeable")
    assert finding is not None
    assert finding.severity is ERROR
    assert "refuses to merge" in finding.message
    assert find(make_plan(), "dora-not-mergeable") is None
    assert find(make_plan(method="full", lora={"use_dora": True}), "dora-not-mergeable") is None


@pytest.mark.parametrize(
    ("layers", "severity"),
    [
        (None, None),
        ("last_two_thirds", None),
        ({"first": 11, "last": 31}, None),
        ({"first": 11, "last": 32}, ERROR),
        ({"first": 0, "last": 31}, INFO),
    ],
)
def test_layers(layers: Any, severity: Severity | None) -> None:
    assert severity_of(make_plan(lora={"layers": layers}), "layers-unsuitable") is severity


def test_targets_that_are_not_merged() -> None:
    def with_targets(*names: str, is_tied: bool = False) -> Severity | None:
        plan = make_plan(
            shape=replace(SEVEN_B, has_tied_embeddings=is_tied), lora={"target_modules": list(names)}
        )
        return severity_of(plan, "target-not-mergeable")

    assert with_targets(*DEFAULT_TARGET_MODULES) is None
    assert with_targets("q_proj", "embed_tokens") is ERROR
    assert with_targets("q_proj", "lm_head") is WARNING
    assert with_targets("q_proj", "lm_head", is_tied=True) is ERROR
    plan = make_plan(shape=None, lora={"target_modules": ["model.embed_tokens"]})
    assert severity_of(plan, "target-not-mergeable") is ERROR


def test_targets_that_the_base_lacks() -> None:
    finding = find(make_plan(lora={"target_modules": ["q_proj", "query_key_value"]}), "target-module-unknown")
    assert finding is not None
    assert finding.message.startswith("By its config.json the base has no query_key_value; it has q_proj")
    for names in (["self_attn.q_proj", "o_proj"], ["q_proj", "lm_head"]):
        assert find(make_plan(lora={"target_modules": names}), "target-module-unknown") is None


@pytest.mark.parametrize(
    ("names", "is_told"),
    [
        (["q_proj", "v_proj"], True),
        (["v_proj"], True),
        (["self_attn.q_proj"], True),
        (["q_proj", "v_proj", "o_proj"], False),
        (list(DEFAULT_TARGET_MODULES), False),
    ],
)
def test_the_old_practice_of_two_projections(names: list[str], is_told: bool) -> None:
    finding = severity_of(make_plan(lora={"target_modules": names}), "query-and-value-only")
    assert (finding is WARNING) is is_told


@pytest.mark.parametrize(
    ("rank", "num_rows", "advised"),
    # 60 rows for each unit of rank; r 16 always passes.
    [(64, 3839, 63), (64, 3840, None), (32, 500, 16), (16, 10, None), (8, 10, None)],
)
def test_a_rank_too_large_for_the_data(rank: int, num_rows: int, advised: int | None) -> None:
    finding = find(make_plan(lora={"r": rank}, data=make_data(num_rows)), "rank-large-for-the-data")
    if advised is None:
        assert finding is None
    else:
        assert finding is not None and finding.remedy.startswith(f"Set r to {advised} or less")


@pytest.mark.parametrize(
    ("dropout", "num_rows", "settings", "severity"),
    [
        (0.0, 9_999, {}, WARNING),
        (0.0, 9_999, {"num_epochs": 1}, INFO),
        (0.0, 10_000, {}, None),
        (0.01, 9_999, {}, None),
    ],
)
def test_no_dropout_on_small_data(
    dropout: float, num_rows: int, settings: dict[str, Any], severity: Severity | None
) -> None:
    plan = make_plan(lora={"lora_dropout": dropout}, data=make_data(num_rows), **settings)
    assert severity_of(plan, "dropout-off-on-small-data") is severity


@pytest.mark.parametrize(
    ("dropout", "num_rows", "severity"), [(0.05, 10_000, INFO), (0.02, 10_000, None), (0.05, 9_999, None)]
)
def test_dropout_on_large_data(dropout: float, num_rows: int, severity: Severity | None) -> None:
    plan = make_plan(lora={"lora_dropout": dropout}, data=make_data(num_rows))
    assert severity_of(plan, "dropout-on-large-data") is severity
