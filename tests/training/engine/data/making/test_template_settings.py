import pytest

from training.engine.data.making.template_settings import TemplateSettings
from training.engine.errors import ConfigInvalid


def test_defaults_and_round_trip() -> None:
    assert TemplateSettings.from_json({}) == TemplateSettings()
    settings = TemplateSettings.from_json({"num_examples": 7, "paraphrase_instructions": ["Say it anew."]})
    assert TemplateSettings.from_json(settings.to_json()) == settings


def test_all_faults_at_once() -> None:
    with pytest.raises(ConfigInvalid) as caught:
        TemplateSettings.from_json({"num_examples": 50_001, "max_similarity": 0, "sed": 1})
    assert [(fault.code, fault.where) for fault in caught.value.faults] == [
        ("invalid-value", "templates.num_examples"),
        ("invalid-value", "templates.max_similarity"),
        ("unknown-key", "templates.sed"),
    ]
