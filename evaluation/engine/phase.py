"""A phase: one engine with one model, and everything that is asked of it. A folder, so that it can be run
again by hand.

``phase.json`` names the model, the adapter and the engine's settings; ``requests.jsonl`` holds the requests.
The engine's process writes ``outputs.jsonl`` and ``engine.json`` (fingerprint and times), both atomically, or
``failure.json``.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evaluation.engine.backends.base import (
    AdapterSource,
    BackendConfig,
    ContinuationRequest,
    ContinuationScore,
    GenerationOutput,
    GenerationRequest,
)

PHASE_FILE: Final = "phase.json"
REQUESTS_FILE: Final = "requests.jsonl"
OUTPUTS_FILE: Final = "outputs.jsonl"
ENGINE_FILE: Final = "engine.json"
FAILURE_FILE: Final = "failure.json"
LOG_FILE: Final = "engine.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseSpec:
    """What an engine process is asked to do.

    Attributes:
        model: Folder of the base or merged model.
        adapter: Applied to every request; None for the bare model.
        backend: The engine and its settings.
        generations: Prompts to continue.
        continuations: Continuations to score.
    """

    model: Path
    adapter: AdapterSource | None
    backend: BackendConfig
    generations: tuple[GenerationRequest, ...]
    continuations: tuple[ContinuationRequest, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseResult:
    """What an engine process gave back.

    Attributes:
        generations: By request id.
        continuations: By request id.
        fingerprint: Of the engine.
        timing: Seconds by step (``load_seconds``, ``generate_seconds``, ``score_seconds``) and
            ``num_output_tokens``.
    """

    generations: Mapping[str, GenerationOutput]
    continuations: Mapping[str, ContinuationScore]
    fingerprint: Mapping[str, Any]
    timing: Mapping[str, float]


def write_phase(folder: Path, spec: PhaseSpec) -> None:
    """Write the phase's folder; it is made when it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json_atomically(folder / PHASE_FILE, _spec_to_json(spec))
    write_lines_atomically(
        folder / REQUESTS_FILE,
        [
            *map(_generation_request_to_json, spec.generations),
            *map(_continuation_request_to_json, spec.continuations),
        ],
    )


def read_phase(folder: Path) -> PhaseSpec:
    """Read a phase's folder."""
    document = json.loads((folder / PHASE_FILE).read_text(encoding="utf-8"))
    adapter = document["adapter"]
    requests = list(read_lines(folder / REQUESTS_FILE))
    return PhaseSpec(
        model=Path(document["model"]),
        adapter=None
        if adapter is None
        else AdapterSource(path=Path(adapter["path"]), name=adapter["name"], rank=adapter["rank"]),
        backend=BackendConfig.from_json(document["backend"]),
        generations=tuple(_generation_request(r) for r in requests if r["kind"] == "generate"),
        continuations=tuple(_continuation_request(r) for r in requests if r["kind"] == "score"),
    )


def write_phase_outputs(
    folder: Path,
    generations: Sequence[GenerationOutput],
    continuations: Sequence[ContinuationScore],
    engine: Mapping[str, Any],
) -> None:
    """Write what the engine gave; ``outputs.jsonl`` comes last and says that all is there."""
    write_json_atomically(folder / ENGINE_FILE, engine)
    write_lines_atomically(
        folder / OUTPUTS_FILE,
        [*map(_generation_output_to_json, generations), *map(_continuation_score_to_json, continuations)],
    )


def read_phase_outputs(folder: Path) -> PhaseResult:
    """Read what the engine gave."""
    engine = json.loads((folder / ENGINE_FILE).read_text(encoding="utf-8"))
    outputs = list(read_lines(folder / OUTPUTS_FILE))
    return PhaseResult(
        generations={o["request_id"]: _generation_output(o) for o in outputs if o["kind"] == "generate"},
        continuations={o["request_id"]: _continuation_score(o) for o in outputs if o["kind"] == "score"},
        fingerprint=engine["fingerprint"],
        timing=engine["timing"],
    )


def write_json_atomically(path: Path, document: Mapping[str, Any]) -> None:
    """Write one JSON document so that a reader sees all of it or none."""
    _write_atomically(path, [json.dumps(document, ensure_ascii=False, allow_nan=False, indent=2)])


def write_lines_atomically(path: Path, documents: Sequence[Mapping[str, Any]]) -> None:
    """Write JSON lines so that a reader sees all of them or none."""
    _write_atomically(
        path, (json.dumps(document, ensure_ascii=False, allow_nan=False) for document in documents)
    )


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read JSON lines that this package wrote."""
    with path.open(encoding="utf-8", newline="\n") as stream:
        for line in stream:
            yield json.loads(line)


def _write_atomically(path: Path, lines: Any) -> None:
    partial = path.with_name(f"{path.name}.partial")
    with partial.open("w", encoding="utf-8", newline="\n") as stream:
        for line in lines:
            stream.write(f"{line}\n")
        stream.flush()
        os.fsync(stream.fileno())
    partial.replace(path)


def _spec_to_json(spec: PhaseSpec) -> dict[str, Any]:
    adapter = spec.adapter
    return {
        "schema_version": 1,
        "model": str(spec.model),
        "adapter": None
        if adapter is None
        else {"path": str(adapter.path), "name": adapter.name, "rank": adapter.rank},
        "backend": spec.backend.to_json(),
    }


def _generation_request_to_json(request: GenerationRequest) -> dict[str, Any]:
    return {
        "kind": "generate",
        "request_id": request.request_id,
        "prompt_token_ids": request.prompt_token_ids,
        "max_tokens": request.max_tokens,
        "stop_token_ids": request.stop_token_ids,
        "num_logprobs": request.num_logprobs,
    }


def _generation_request(document: Mapping[str, Any]) -> GenerationRequest:
    return GenerationRequest(
        request_id=document["request_id"],
        prompt_token_ids=tuple(document["prompt_token_ids"]),
        max_tokens=document["max_tokens"],
        stop_token_ids=tuple(document["stop_token_ids"]),
        num_logprobs=document["num_logprobs"],
    )


def _continuation_request_to_json(request: ContinuationRequest) -> dict[str, Any]:
    return {
        "kind": "score",
        "request_id": request.request_id,
        "prompt_token_ids": request.prompt_token_ids,
        "continuation_token_ids": request.continuation_token_ids,
    }


def _continuation_request(document: Mapping[str, Any]) -> ContinuationRequest:
    return ContinuationRequest(
        request_id=document["request_id"],
        prompt_token_ids=tuple(document["prompt_token_ids"]),
        continuation_token_ids=tuple(document["continuation_token_ids"]),
    )


def _generation_output_to_json(output: GenerationOutput) -> dict[str, Any]:
    # JSON keys are texts; pairs keep the token ids numbers.
    logprobs = None if output.logprobs is None else [list(map(list, p.items())) for p in output.logprobs]
    return {
        "kind": "generate",
        "request_id": output.request_id,
        "text": output.text,
        "token_ids": output.token_ids,
        "finish_reason": output.finish_reason,
        "num_prompt_tokens": output.num_prompt_tokens,
        "logprobs": logprobs,
    }


def _generation_output(document: Mapping[str, Any]) -> GenerationOutput:
    logprobs = document["logprobs"]
    return GenerationOutput(
        request_id=document["request_id"],
        text=document["text"],
        token_ids=tuple(document["token_ids"]),
        finish_reason=document["finish_reason"],
        num_prompt_tokens=document["num_prompt_tokens"],
        logprobs=None if logprobs is None else tuple({token: value for token, value in p} for p in logprobs),
    )


def _continuation_score_to_json(score: ContinuationScore) -> dict[str, Any]:
    return {"kind": "score", "request_id": score.request_id, "token_logprobs": score.token_logprobs}


def _continuation_score(document: Mapping[str, Any]) -> ContinuationScore:
    return ContinuationScore(
        request_id=document["request_id"], token_logprobs=tuple(document["token_logprobs"])
    )
