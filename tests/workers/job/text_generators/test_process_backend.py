from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evaluation.engine.backends.base import (
    BackendConfig,
    BackendError,
    GenerationOutput,
    GenerationRequest,
)
from evaluation.engine.phase import PhaseResult, PhaseSpec
from evaluation.engine.progress import ProgressReporter
from workers.job.text_generators.process_backend import ProcessBackend

CONFIG = BackendConfig(name="transformers")
REQUESTS = [
    GenerationRequest(request_id=name, prompt_token_ids=(1,), max_tokens=2, stop_token_ids=(2,))
    for name in ("b", "a")
]


class Phases:
    """Stands for run_phase: answers every request by its id; the fingerprint is told for each call."""

    def __init__(self, *fingerprints: Mapping[str, Any]) -> None:
        self.fingerprints = list(fingerprints)
        self.specs: list[PhaseSpec] = []

    def __call__(self, folder: Path, spec: PhaseSpec, report: ProgressReporter) -> PhaseResult:
        folder.mkdir()
        report.progress(0.5, "half")
        self.specs.append(spec)
        outputs = {
            request.request_id: GenerationOutput(
                request_id=request.request_id,
                text=request.request_id,
                token_ids=(2,),
                finish_reason="stop",
                num_prompt_tokens=1,
            )
            for request in reversed(spec.generations)
        }
        return PhaseResult(
            generations=outputs, continuations={}, fingerprint=self.fingerprints.pop(0), timing={}
        )


def backend(folder: Path, phases: Phases) -> ProcessBackend:
    return ProcessBackend(Path("/models/base"), CONFIG, scratch=folder, run=phases)


def test_each_call_is_one_phase_and_leaves_nothing(tmp_path: Path) -> None:
    phases = Phases({"digest": "x"}, {"digest": "x"})
    engine, told = backend(tmp_path, phases), list[tuple[float, str]]()
    for _ in range(2):
        outputs = engine.generate(REQUESTS, lambda fraction, message: told.append((fraction, message)))
        assert [output.text for output in outputs] == ["b", "a"]
    assert engine.generate([], print) == []
    assert engine.fingerprint() == {"digest": "x"}
    assert [spec.generations for spec in phases.specs] == [tuple(REQUESTS)] * 2
    assert phases.specs[0].model == Path("/models/base") and phases.specs[0].backend == CONFIG
    assert told == [(0.5, "half")] * 2
    assert list(tmp_path.iterdir()) == []


def test_the_fingerprint_is_asked_for_once_before_the_first_generation(tmp_path: Path) -> None:
    phases = Phases({"digest": "x"})
    engine = backend(tmp_path, phases)
    assert engine.fingerprint() == engine.fingerprint() == {"digest": "x"}
    assert [spec.generations for spec in phases.specs] == [()]


def test_another_engine_in_between_is_an_error(tmp_path: Path) -> None:
    engine = backend(tmp_path, Phases({"digest": "x"}, {"digest": "y"}))
    engine.fingerprint()
    with pytest.raises(BackendError) as error:
        engine.generate(REQUESTS, print)
    assert error.value.code == "engine-changed"
