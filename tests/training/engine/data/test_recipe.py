import json

import pytest

from training.engine.data.checks.catalogue import CHECKS
from training.engine.data.cleaning.catalogue import DEFAULT_STEPS, STEPS
from training.engine.data.recipe import Recipe
from training.engine.errors import ConfigInvalid


def test_an_empty_recipe_cleans_by_all_steps_and_makes_all_checks() -> None:
    recipe = Recipe.from_json({})
    assert [step.kind.name for step in recipe.clean] == list(DEFAULT_STEPS)
    assert set(DEFAULT_STEPS) == set(STEPS)
    assert [check.kind.name for check in recipe.checks] == list(CHECKS)
    assert (recipe.role, recipe.split, recipe.mix) == ("train", None, None)


def test_a_recipe_written_out_reads_back_equal() -> None:
    raw = {
        "role": "train",
        "seed": 5,
        "clean": ["drop_empty", {"step": "drop_duplicates", "threshold": 0.9}],
        "checks": [{"check": "label_balance"}],
        "split": {"stratify_by": "answer/intent"},
        "mix": {"general_fraction": 0.1},
    }
    recipe = Recipe.from_json(raw)
    written = json.loads(json.dumps(recipe.to_json()))
    assert Recipe.from_json(written) == recipe
    assert written["clean"][1]["threshold"] == 0.9
    assert written["split"]["holdout_fraction"] == 0.1


def test_every_fault_comes_at_once_with_its_place() -> None:
    raw = {
        "rolle": "train",
        "seed": -1,
        "intake": {"shape": "poem"},
        "clean": ["drop_emty", {"step": "drop_duplicates", "threshold": 7, "size": 1}, 5],
        "checks": "all",
        "split": {"holdout_fraction": 0},
        "mix": [],
    }
    with pytest.raises(ConfigInvalid) as caught:
        Recipe.from_json(raw)
    assert caught.value.code == "recipe-invalid"
    places = {fault.where for fault in caught.value.faults}
    assert {
        "rolle",
        "recipe.seed",
        "intake.shape",
        "clean[0]",
        "clean[1].threshold",
        "clean[1].size",
        "clean[2]",
        "checks",
        "split.holdout_fraction",
        "mix",
    } <= places
    [misspelt] = [fault for fault in caught.value.faults if fault.where == "clean[0]"]
    assert "drop_empty" in misspelt.remedy


@pytest.mark.parametrize("part", ["split", "mix"])
def test_only_training_data_are_split_and_mixed(part: str) -> None:
    with pytest.raises(ConfigInvalid) as caught:
        Recipe.from_json({"role": "ood", part: {}})
    assert [fault.where for fault in caught.value.faults] == [part]
