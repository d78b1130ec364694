import pytest

from training.engine.data.making.deflavouring import FlavourSettings
from training.engine.data.making.distillation_settings import DistillationSettings
from training.engine.errors import ConfigInvalid

SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def test_defaults_and_round_trip() -> None:
    assert DistillationSettings.from_json({}) == DistillationSettings()
    assert DistillationSettings().num_candidates == 3  # MISSION C5
    settings = DistillationSettings.from_json(
        {"flavour": {"min_answers": 5, "keep_phrases": ["Sure"]}, "seed": 7}
    )
    assert settings.flavour == FlavourSettings(min_answers=5, keep_phrases=("Sure",))
    assert DistillationSettings.from_json(settings.to_json()) == settings
    off = DistillationSettings.from_json({"flavour": None, "output_schema": SCHEMA})
    assert DistillationSettings.from_json(off.to_json()) == off


def test_a_schema_asks_for_json() -> None:
    rules = DistillationSettings.from_json({"output_schema": SCHEMA}).answer_rules()
    assert rules.is_json and rules.schema is not None
    rules = DistillationSettings.from_json({"answer_format": "json"}).answer_rules()
    assert rules.is_json and rules.schema is None
    assert not DistillationSettings().answer_rules().is_json


def test_all_faults_at_once() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        DistillationSettings.from_json(
            {
                "num_candidates": 0,
                "answer_format": "text",
                "output_schema": {"type": 3},
                "flavour": {"min_fraction": 2, "min": 1},
                "tempo": 1,
            }
        )
    assert caught.value.code == "distillation-settings-invalid"
    assert sorted((fault.code, fault.where) for fault in caught.value.faults) == [
        ("invalid-value", "distillation.flavour.min_fraction"),
        ("invalid-value", "distillation.num_candidates"),
        ("schema-invalid", "distillation.output_schema"),
        ("schema-without-json", "distillation.output_schema"),
        ("unknown-key", "distillation.flavour.min"),
        ("unknown-key", "distillation.tempo"),
    ]
    with pytest.raises(ConfigInvalid, match="must be an object"):
        DistillationSettings.from_json([])
