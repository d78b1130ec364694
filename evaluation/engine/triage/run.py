"""Runs the samples of a triage on a base model, under every prompt, and writes the report folder.

All prompts go to one engine process (see ``generation``). ``triage.json`` says how each prompt did and what
the verdict is before a person has looked; ``items.jsonl`` holds every sample under the best prompt.
"""

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evaluation.engine.backends.base import GenerationOutput, GenerationRequest
from evaluation.engine.backends.tokenizer import load_tokenizer
from evaluation.engine.errors import EvaluationError, Fault, describe_faults
from evaluation.engine.generation import run_phase
from evaluation.engine.json_text import make_storable
from evaluation.engine.phase import PhaseResult, PhaseSpec, write_json_atomically, write_lines_atomically
from evaluation.engine.progress import PartReporter, ProgressReporter
from evaluation.engine.prompts import (
    ChatFormat,
    RenderedPrompt,
    assemble_messages,
    build_chat_format,
    decode_raw,
    render_prompt,
)
from evaluation.engine.scoring.behaviour import Behaviour, observe_behaviour
from evaluation.engine.scoring.schema_validity import SchemaValidator
from evaluation.engine.triage.errors import TriageInvalid
from evaluation.engine.triage.judging import Answer, JudgedAnswer, judge_answer
from evaluation.engine.triage.kinds import FailureKind, Outcome
from evaluation.engine.triage.samples import ParsedSamples, Sample
from evaluation.engine.triage.settings import PromptCandidate, TriageConfig
from evaluation.engine.triage.signals import Signal
from evaluation.engine.triage.sorting import Sorting, sort_answers
from evaluation.engine.triage.values import LabelSpace, build_label_space
from evaluation.engine.triage.verdict import SortedSample, TriageVerdict, reach_verdict
from registry.artifacts.findings import shown

SUMMARY_FILE: Final = "triage.json"
ITEMS_FILE: Final = "items.jsonl"
SCHEMA_VERSION: Final = 1

_QUIET: Final = Behaviour(never_stopped=False, template_residue=False, repetition=False, preamble=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriageResult:
    """What came of a run.

    Attributes:
        summary: Content of ``triage.json``.
        items: Content of ``items.jsonl``: every sample under the best prompt.
        verdict: Before a person has looked.
    """

    summary: Mapping[str, Any]
    items: tuple[Mapping[str, Any], ...]
    verdict: TriageVerdict


@dataclass(frozen=True, slots=True)
class _Asked:
    """A sample under a prompt; ``num_missing_tokens`` of context make it impossible for the base, or 0."""

    sample: Sample
    prompt: RenderedPrompt
    key: str
    num_missing_tokens: int


@dataclass(frozen=True, slots=True)
class _Tried:
    """All samples under one prompt."""

    candidate: PromptCandidate
    asked: tuple[_Asked, ...]
    answers: tuple[JudgedAnswer, ...]
    sortings: tuple[Sorting, ...]

    @property
    def num_passed(self) -> int:
        return sum(judged.outcome is Outcome.PASSED for judged in self.answers)

    @property
    def mean_score(self) -> float | None:
        scores = [judged.score for judged in self.answers if judged.score is not None]
        return sum(scores) / len(scores) if scores else None


def run_triage(
    *,
    base_model: Path,
    samples: ParsedSamples,
    config: TriageConfig,
    workdir: Path,
    output: Path,
    report: ProgressReporter,
) -> TriageResult:
    """Run a triage.

    Args:
        base_model: Folder of the base model.
        samples: The samples and what is doubtful about them.
        config: Prompts, schema, engine.
        workdir: Keeps the engine's requests, outputs and log.
        output: Report folder, made here.
        report: Gets progress and log lines.

    Raises:
        TriageInvalid: Prompts do not fit into the engine's context though the base could read them
            (``prompt-too-long``), all of them named.
        PromptError: The base's tokenizer or chat template is at fault.
        EngineError: The engine failed.
    """
    started = time.monotonic()
    report.progress(0.0, "rendering prompts")
    chat = build_chat_format(load_tokenizer(base_model))
    asked = _plan(samples.samples, config, chat, _context_of(base_model))
    prepared = time.monotonic()
    phase = run_phase(
        workdir / "phase",
        PhaseSpec(
            model=base_model,
            adapter=None,
            backend=config.backend,
            generations=tuple(_request(item, config, chat) for items in asked for item in items
                              if not item.num_missing_tokens),
            continuations=(),
        ),
        PartReporter(report, 0.05, 0.95, "base model"),
    )  # fmt: skip
    report.progress(0.95, "sorting the failures")
    space = build_label_space(samples.samples, config.output_schema)
    tried = [
        _try(candidate, items, phase, chat, config, space)
        for candidate, items in zip(config.prompts, asked, strict=True)
    ]
    best = choose_best([(item.num_passed, item.mean_score) for item in tried])
    result = _build_result(tried, best, samples, phase, chat, started=started, prepared=prepared)
    output.mkdir(parents=True, exist_ok=True)
    write_lines_atomically(output / ITEMS_FILE, result.items)
    write_json_atomically(output / SUMMARY_FILE, result.summary)
    report.progress(1.0, f"{result.verdict.num_failed} of {result.verdict.num_samples} failed")
    return result


def choose_best(scores: Sequence[tuple[int, float | None]]) -> int:
    """Return the position of the best prompt: most samples passed, then the mean score, then the first.

    Args:
        scores: Of each prompt, samples passed and mean score (None when no sample could be judged).
    """
    return max(range(len(scores)), key=lambda number: (scores[number][0], scores[number][1] or 0.0, -number))


def _plan(
    samples: Sequence[Sample], config: TriageConfig, chat: ChatFormat, num_base_tokens: int | None
) -> list[tuple[_Asked, ...]]:
    faults: list[Fault] = []
    planned = []
    for number, candidate in enumerate(config.prompts):
        asked = []
        for position, sample in enumerate(samples):
            messages = assemble_messages(
                sample.example,
                system_prompt=candidate.system_prompt,
                few_shot=candidate.few_shot,
                replace_system=True,
            )
            prompt = render_prompt(chat, messages)
            num_needed = len(prompt.token_ids) + config.max_tokens
            num_missing = 0 if num_base_tokens is None else max(num_needed - num_base_tokens, 0)
            if not num_missing and num_needed > config.backend.max_model_len:
                faults.append(_too_long(sample, candidate, num_needed, config))
            asked.append(_Asked(sample, prompt, f"{number}:{position}", num_missing))
        planned.append(tuple(asked))
    if faults:
        raise TriageInvalid(
            "prompt-too-long", f"the triage has {describe_faults(faults)}", faults=faults[:50]
        )
    return planned


def _too_long(sample: Sample, candidate: PromptCandidate, num_needed: int, config: TriageConfig) -> Fault:
    return Fault(
        "prompt-too-long",
        f"prompt and answer need {num_needed} tokens, the engine has {config.backend.max_model_len}",
        f"{shown(sample.id)} under {shown(candidate.name)}",
        "raise backend.max_model_len, lower max_tokens, or shorten sample or prompt",
    )


def _context_of(base_model: Path) -> int | None:
    """Tokens that the base was made for; None when its config.json does not say."""
    try:
        document = json.loads((base_model / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    if not isinstance(document, Mapping):
        return None
    nested = document.get("text_config")
    for part in (document, nested if isinstance(nested, Mapping) else {}):
        value = part.get("max_position_embeddings")
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    return None


def _request(item: _Asked, config: TriageConfig, chat: ChatFormat) -> GenerationRequest:
    return GenerationRequest(
        request_id=item.key,
        prompt_token_ids=item.prompt.token_ids,
        max_tokens=config.max_tokens,
        stop_token_ids=chat.stop_token_ids,
    )


def _try(
    candidate: PromptCandidate,
    asked: tuple[_Asked, ...],
    phase: PhaseResult,
    chat: ChatFormat,
    config: TriageConfig,
    space: LabelSpace,
) -> _Tried:
    validator = None if config.output_schema is None else SchemaValidator(config.output_schema)
    answers = [
        judge_answer(
            item.sample,
            _answer(item, phase.generations.get(item.key), chat),
            validator=validator,
            space=space,
        )
        for item in asked
    ]
    sortings = [
        _context_sorting(item) if item.num_missing_tokens else sorting
        for item, sorting in zip(asked, sort_answers(answers, space), strict=True)
    ]
    return _Tried(candidate, asked, tuple(answers), tuple(sortings))


def _answer(item: _Asked, output: GenerationOutput | None, chat: ChatFormat) -> Answer:
    told = "\n".join(message.content for message in item.prompt.messages)
    if item.num_missing_tokens:
        return Answer(text="", finish_reason="not-asked", num_tokens=0, behaviour=_QUIET, told=told)
    if output is None:
        raise EvaluationError(
            "output-missing",
            f"the engine gave no output for sample {shown(item.sample.id)}",
            failure_class="internal",
        )
    return Answer(
        text=output.text,
        finish_reason=output.finish_reason,
        num_tokens=len(output.token_ids),
        behaviour=observe_behaviour(
            raw_text=decode_raw(chat, output.token_ids),
            finish_reason=output.finish_reason,
            special_tokens=chat.tokenizer.all_special_tokens,
        ),
        told=told,
    )


def _context_sorting(item: _Asked) -> Sorting:
    """Guide, section 1.3: a base without the context for a document lacks a capability."""
    signal = Signal(
        kind=FailureKind.MISSING_CAPABILITY,
        code="context-exceeded",
        confidence=0.95,
        message=f"prompt and answer need {item.num_missing_tokens} tokens more than the base can read",
        evidence={"num_missing_tokens": item.num_missing_tokens},
    )
    kind = FailureKind.MISSING_CAPABILITY
    return Sorting(kind=kind.value, leaning=kind, confidence=0.95, signals=(signal,))


def _build_result(
    tried: Sequence[_Tried],
    best: int,
    samples: ParsedSamples,
    phase: PhaseResult,
    chat: ChatFormat,
    *,
    started: float,
    prepared: float,
) -> TriageResult:
    chosen = tried[best]
    items = tuple(make_storable(_item(position, chosen, tried)) for position in range(len(samples.samples)))
    verdict = reach_verdict(
        [
            SortedSample(sample_id=judged.sample.id, outcome=judged.outcome, kind=sorting.kind)
            for judged, sorting in zip(chosen.answers, chosen.sortings, strict=True)
        ]
    )
    summary = {
        "schema_version": SCHEMA_VERSION,
        "num_samples": len(samples.samples),
        "warnings": [warning.to_json() for warning in samples.warnings],
        "prompts": [_prompt_row(item) for item in tried],
        "best_prompt": chosen.candidate.name,
        "verdict": verdict.to_json(),
        "engine_fingerprint": dict(phase.fingerprint),
        "chat_template_sha256": chat.template_sha256,
        "timing": {
            "prepare_seconds": round(prepared - started, 3),
            "engine": dict(phase.timing),
            "total_seconds": round(time.monotonic() - started, 3),
        },
    }
    return TriageResult(summary=make_storable(summary), items=items, verdict=verdict)


def _prompt_row(tried: _Tried) -> dict[str, Any]:
    outcomes = Counter(judged.outcome for judged in tried.answers)
    score = tried.mean_score
    return {
        "name": tried.candidate.name,
        "num_passed": outcomes[Outcome.PASSED],
        "num_failed": outcomes[Outcome.FAILED],
        "num_unjudged": outcomes[Outcome.UNJUDGED],
        "mean_score": None if score is None else round(score, 4),
        "kinds": dict(Counter(sorting.kind for sorting in tried.sortings if sorting.kind is not None)),
    }


def _item(position: int, chosen: _Tried, tried: Sequence[_Tried]) -> dict[str, Any]:
    judged, asked = chosen.answers[position], chosen.asked[position]
    example = judged.sample.example
    return {
        "position": position + 1,
        "sample_id": judged.sample.id,
        "messages": [message.to_json() for message in asked.prompt.messages],
        "reference": judged.sample.reference,
        "output": judged.answer.text,
        "finish_reason": judged.answer.finish_reason,
        "num_prompt_tokens": len(asked.prompt.token_ids),
        "num_output_tokens": judged.answer.num_tokens,
        "outcome": judged.outcome.value,
        "score": judged.score,
        "parse": None if judged.parsed is None else judged.parsed.level,
        "schema_errors": [dict(error) for error in judged.schema_errors],
        "wrong": [item.to_json() for item in judged.wrong],
        "style": [mark.code for mark in judged.style],
        "behaviour": judged.answer.behaviour.to_json(),
        "sorting": chosen.sortings[position].to_json(),
        "passed_by": [
            item.candidate.name for item in tried if item.answers[position].outcome is Outcome.PASSED
        ],
        "category": example.category,
        "tags": dict(example.tags),
    }
