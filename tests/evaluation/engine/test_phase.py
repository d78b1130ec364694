from pathlib import Path

import pytest

from evaluation.engine.backends.base import (
    AdapterSource,
    BackendConfig,
    ContinuationRequest,
    ContinuationScore,
    GenerationOutput,
    GenerationRequest,
)
from evaluation.engine.phase import (
    PhaseSpec,
    read_phase,
    read_phase_outputs,
    write_phase,
    write_phase_outputs,
)


def test_a_phase_survives_its_folder(tmp_path: Path) -> None:
    spec = PhaseSpec(
        model=Path("/models/base"),
        adapter=AdapterSource(path=Path("/adapters/a"), name="adapter-ab", rank=16),
        backend=BackendConfig(name="transformers", max_model_len=128),
        generations=(
            GenerationRequest(
                request_id="a", prompt_token_ids=(1, 2), max_tokens=3, stop_token_ids=(2,), num_logprobs=5
            ),
        ),
        continuations=(
            ContinuationRequest(request_id="b", prompt_token_ids=(1,), continuation_token_ids=(4, 5)),
        ),
    )
    write_phase(tmp_path / "phase", spec)
    assert read_phase(tmp_path / "phase") == spec


def test_outputs_survive_their_folder(tmp_path: Path) -> None:
    output = GenerationOutput(
        request_id="a",
        text="line\u2028separator \U0001f600",
        token_ids=(7, 2),
        finish_reason="stop",
        num_prompt_tokens=2,
        logprobs=({7: -0.1, 9: -2.5}, {2: -0.25}),
    )
    score = ContinuationScore(request_id="b", token_logprobs=(-1.5, -0.5))
    engine = {"fingerprint": {"digest": "x"}, "timing": {"load_seconds": 1.0}}
    write_phase_outputs(tmp_path, [output], [score], engine)
    result = read_phase_outputs(tmp_path)
    assert result.generations == {"a": output}
    assert result.continuations == {"b": score}
    assert (result.fingerprint, result.timing) == ({"digest": "x"}, {"load_seconds": 1.0})
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize(
    "document",
    [
        {"name": "onnx"},
        {"dtype": "int4"},
        {"max_model_len": 0},
        {"gpu_memory_utilization": 1.5},
        {"temperature": 0.5},
    ],
)
def test_impossible_backend_settings_are_refused(document: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"must be|unknown"):
        BackendConfig.from_json(document)
