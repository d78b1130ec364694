"""Laying settings over a configuration."""

from training.engine.config import TrainingConfig
from training.engine.mini.overlay import overlay_settings, read_mini_defaults


def test_the_defaults_are_those_of_the_mission() -> None:
    config = TrainingConfig.from_json(read_mini_defaults())
    # MISSION D6: 200 samples, 200 steps, within ten minutes.
    assert (config.data.max_examples, config.training.max_steps, config.training.max_minutes) == (
        200,
        200,
        10,
    )


def test_only_what_is_named_is_replaced_and_nothing_is_changed_in_place() -> None:
    given = {"lora": {"r": 8}, "training": {"learning_rate": 1e-4, "max_steps": 9}}
    merged = overlay_settings(given, {"training": {"max_steps": 200}, "data": {"max_examples": 5}})
    assert merged == {
        "lora": {"r": 8},
        "training": {"learning_rate": 1e-4, "max_steps": 200},
        "data": {"max_examples": 5},
    }
    assert given["training"] == {"learning_rate": 1e-4, "max_steps": 9}


def test_a_value_that_is_no_section_is_replaced() -> None:
    assert overlay_settings(
        {"training": 3, "method": "lora"}, {"training": {"seed": 1}, "method": "qlora"}
    ) == {
        "training": {"seed": 1},
        "method": "qlora",
    }
