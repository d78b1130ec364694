from typing import Any

import pytest

from training.engine.errors import ConfigInvalid
from workers.job.screen_settings import NUM_EXAMPLES_PER_CALL, ModelScreenSettings


def test_what_is_left_out_takes_its_default() -> None:
    settings = ModelScreenSettings.from_json({}, backend="transformers")
    assert settings.model_pass.batch_size == NUM_EXAMPLES_PER_CALL
    assert settings.screen.action == "redact"
    given = ModelScreenSettings.from_json(
        {"screen": {"actions": {"person-name": "flag"}}, "model_pass": {"max_tokens": 9}}
    )
    assert given.screen.get_action("person-name") == "flag"
    assert given.model_pass.max_tokens == 9


@pytest.mark.parametrize(
    ("raw", "faults"),
    [
        (
            {"screen": {"action": "hide"}, "model_pass": {"max_tokens": 0, "x": 1}, "backend": [], "y": 2},
            [
                ("unknown-key", "y"),
                ("invalid-value", "screen.action"),
                ("invalid-value", "model_pass.max_tokens"),
                ("unknown-key", "model_pass.x"),
                ("backend-invalid", "backend"),
            ],
        ),
        (
            {"model_pass": {"max_characters": 100, "overlap_characters": 100}},
            [("invalid-value", "model_pass")],
        ),
        ({"backend": {"max_model_len": 512}}, [("backend-invalid", "backend")]),
    ],
)
def test_every_fault_at_once(raw: dict[str, Any], faults: list[tuple[str, str]]) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        ModelScreenSettings.from_json(raw)
    assert [(fault.code, fault.where) for fault in refused.value.faults] == faults
