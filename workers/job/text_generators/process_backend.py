"""An engine that is asked in a process of its own, and gone between two questions.

Several models can so take turns on one machine: GPU memory is not surely freed otherwise (vllm 1908, 3281).
Every question costs a start of the engine, so it should hold many prompts.
"""

import logging
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evaluation.engine.backends.base import (
    BackendConfig,
    BackendError,
    GenerationOutput,
    GenerationRequest,
    ProgressCallback,
)
from evaluation.engine.generation import run_phase
from evaluation.engine.phase import PhaseResult, PhaseSpec
from evaluation.engine.progress import ProgressReporter

logger = logging.getLogger(__name__)


class ProcessBackend:
    """The part of a ``Backend`` that generates, one process for each call.

    Args:
        model: Folder of the base or merged model.
        config: The engine and its settings.
        scratch: Folder for requests, outputs and logs; must exist. What a failed call left stays there.
        run: Runs one phase; tests put something else there.
    """

    def __init__(
        self,
        model: Path,
        config: BackendConfig,
        *,
        scratch: Path,
        run: Callable[[Path, PhaseSpec, ProgressReporter], PhaseResult] = run_phase,
    ) -> None:
        self._model = model
        self._config = config
        self._scratch = scratch
        self._run = run
        self._num_calls = 0
        self._fingerprint: Mapping[str, Any] | None = None

    def generate(
        self, requests: Sequence[GenerationRequest], on_progress: ProgressCallback
    ) -> list[GenerationOutput]:
        """Continues every prompt greedily; outputs are in the order of the requests, no request is no call.

        Raises:
            EngineError: the engine could not be started, refused a request, crashed or was killed.
            BackendError: this start gave another engine than the ones before (``engine-changed``).
        """
        if not requests:
            return []
        result = self._ask(tuple(requests), on_progress)
        return [result.generations[request.request_id] for request in requests]

    def fingerprint(self) -> dict[str, Any]:
        """Describes the engine; before the first generation that starts it once, with nothing to generate.

        Raises:
            EngineError: as of ``generate``.
        """
        if self._fingerprint is None:
            self._ask((), _ignore)
        return dict(self._fingerprint or {})

    def _ask(self, requests: tuple[GenerationRequest, ...], on_progress: ProgressCallback) -> PhaseResult:
        self._num_calls += 1
        folder = self._scratch / f"call-{self._num_calls}"
        spec = PhaseSpec(
            model=self._model, adapter=None, backend=self._config, generations=requests, continuations=()
        )
        result = self._run(folder, spec, _CallbackReporter(on_progress))
        shutil.rmtree(folder, ignore_errors=True)
        if self._fingerprint is not None and dict(result.fingerprint) != self._fingerprint:
            # Origins of examples name one engine; two would make them untrue.
            raise BackendError("engine-changed", "the engine's fingerprint changed between two calls")
        self._fingerprint = dict(result.fingerprint)
        return result


class _CallbackReporter:
    """Passes the progress of a phase to a callback; there are no metrics."""

    def __init__(self, on_progress: ProgressCallback) -> None:
        self._on_progress = on_progress

    def progress(self, fraction: float, message: str) -> None:
        self._on_progress(fraction, message)

    def log(self, level: str, message: str) -> None:
        logger.warning("%s: %s", level, message)

    def metric(self, step: int, values: Mapping[str, float]) -> None:
        pass


def _ignore(_fraction: float, _message: str) -> None:
    pass
