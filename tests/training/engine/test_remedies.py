"""Remedies for forgetting as changes of a configuration; the numbers are computed by hand."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.config import TrainingConfig
from training.engine.errors import ConfigInvalid
from training.engine.layer_choice import select_layers
from training.engine.remedies import Remedy, apply_remedy, count_general_rows


def config(**sections: Any) -> TrainingConfig:
    return TrainingConfig.from_json(sections)


def differences(before: TrainingConfig, after: TrainingConfig) -> dict[str, Any]:
    old, new = before.to_json(), after.to_json()
    return {
        f"{section}.{name}": value
        for section in ("lora", "training", "data", "preflight")
        for name, value in new[section].items()
        if value != old[section][name]
    }


def test_the_rate_is_halved() -> None:
    before = config()
    changed = apply_remedy(before, Remedy.LOWER_RATE)
    assert differences(before, changed.config) == {"training.learning_rate": 1e-4}
    assert changed.what == "The learning rate goes from 0.0002 to 0.0001."


@pytest.mark.parametrize(("before", "after"), [(3, 2.0), (2, 1.0), (1.5, 1.0)])
def test_one_epoch_less_but_never_less_than_one(before: float, after: float) -> None:
    given_config = config(training={"num_epochs": before})
    changed = apply_remedy(given_config, Remedy.FEWER_EPOCHS)
    assert differences(given_config, changed.config) == {"training.num_epochs": after}


def test_where_steps_decide_they_are_halved() -> None:
    before = config(training={"max_steps": 301})
    assert differences(before, apply_remedy(before, Remedy.FEWER_EPOCHS).config) == {
        "training.max_steps": 150
    }


def test_the_last_two_thirds() -> None:
    before = config()
    changed = apply_remedy(before, Remedy.LAST_TWO_THIRDS).config
    assert differences(before, changed) == {"lora.layers": "last_two_thirds"}
    # MISSION B5: 20 of 30 blocks.
    assert select_layers(changed.lora.layers, 30) == tuple(range(10, 30))


@pytest.mark.parametrize(
    ("remedy", "sections", "word"),
    [
        (Remedy.FEWER_EPOCHS, {"training": {"num_epochs": 1}}, "num_epochs is 1"),
        (Remedy.FEWER_EPOCHS, {"training": {"max_steps": 1}}, "max_steps is 1"),
        (Remedy.LAST_TWO_THIRDS, {"lora": {"layers": "last_two_thirds"}}, "restricts the LoRA already"),
        (Remedy.LAST_TWO_THIRDS, {"lora": {"layers": {"first": 0, "last": 3}}}, "restricts the LoRA already"),
        (Remedy.LAST_TWO_THIRDS, {"method": "full"}, "Full fine-tuning"),
    ],
)
def test_what_does_not_apply_is_refused(remedy: Remedy, sections: dict[str, Any], word: str) -> None:
    with pytest.raises(ConfigInvalid, match=word) as caught:
        apply_remedy(config(**sections), remedy)
    assert caught.value.code == "remedy-not-applicable"


@pytest.mark.parametrize(
    ("num_task", "num_general", "wanted"),
    [
        (850, 0, 150),  # 150 / 1000 = 15 %
        (850, 50, 100),
        (851, 0, 151),  # 150 / 1001 = 14.99 %, 151 / 1002 = 15.07 %
        (850, 150, 0),
        (850, 400, 0),
        (0, 0, 0),
    ],
)
def test_how_many_general_rows(num_task: int, num_general: int, wanted: int) -> None:
    assert count_general_rows(num_task=num_task, num_general=num_general) == wanted


@given(
    st.integers(min_value=1, max_value=100_000),
    st.integers(min_value=0, max_value=1000),
    st.sampled_from([0.05, 0.15, 0.2]),
)
def test_the_fewest_that_reach_the_fraction(num_task: int, num_general: int, fraction: float) -> None:
    added = count_general_rows(num_task=num_task, num_general=num_general, fraction=fraction)
    total = num_general + added
    assert total / (num_task + total) >= fraction - 1e-9
    if added:
        assert (total - 1) / (num_task + total - 1) < fraction


def test_a_fraction_of_all_is_refused() -> None:
    with pytest.raises(ValueError, match="below 1"):
        count_general_rows(num_task=1, num_general=0, fraction=1.0)


def test_more_general_data_leaves_the_configuration() -> None:
    before = config()
    assert apply_remedy(before, Remedy.MORE_GENERAL_DATA).config == before
