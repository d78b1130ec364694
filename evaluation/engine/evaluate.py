"""Evaluates a base model (baseline) or an adapter (candidate) on a suite and writes the report folder.

Judge what ships (DESIGN section 1.3): a candidate's sets run in the shipping form, and its canaries in both
forms. Each form is one phase with an engine of its own. The report is ``examples.jsonl`` (a row for each
example and form) and ``metrics.json``; the gate decides from these two, here or years later.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from evaluation.engine.adapter_source import prepare_adapter
from evaluation.engine.backends.base import BackendConfig, GenerationOutput
from evaluation.engine.backends.tokenizer import load_tokenizer
from evaluation.engine.errors import EvaluationError
from evaluation.engine.generation import run_phase
from evaluation.engine.metrics import aggregate_sets, constant_answer_warnings
from evaluation.engine.parity import (
    DEFAULT_NEAR_TIE_NATS,
    CanaryComparison,
    compare_outputs,
    count_differences,
    summarise_parity,
)
from evaluation.engine.phase import (
    PhaseResult,
    PhaseSpec,
    read_lines,
    write_json_atomically,
    write_lines_atomically,
)
from evaluation.engine.plan import (
    Plan,
    PlannedExample,
    Subject,
    build_plan,
    continuation_requests,
    generation_requests,
)
from evaluation.engine.progress import PartReporter, ProgressReporter
from evaluation.engine.prompts import ChatFormat, build_chat_format
from evaluation.engine.rows import RowBuilder
from evaluation.engine.scoring.schema_validity import SchemaValidator
from evaluation.engine.suite import ShippingForm
from evaluation.engine.suite_folder import Suite, load_suite_folder

Form = Literal["base", "adapter", "merged"]

EXAMPLES_FILE: Final = "examples.jsonl"
METRICS_FILE: Final = "metrics.json"
SCHEMA_VERSION: Final = 1

CANARY_LOGPROBS: Final = 20
"""Likeliest tokens kept for each canary token; vLLM's own limit. A candidate outside them is far from a
tie."""

_REPEAT_SUFFIX: Final = "#again"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationConfig:
    """What is evaluated, and by which engine.

    Attributes:
        subject: baseline (the base model under the best prompt) or candidate.
        form: The shipping form of a candidate; unused for a baseline.
        backend: The engine.
        num_noise_repeats: Canaries that each form answers twice, to see how much the engine itself varies; 0
            measures no noise floor.
        near_tie_nats: Bound of a near tie (see ``parity``).
    """

    subject: Subject
    form: ShippingForm = "merged"
    backend: BackendConfig = field(default_factory=BackendConfig)
    num_noise_repeats: int = 5
    near_tie_nats: float = DEFAULT_NEAR_TIE_NATS

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> "EvaluationConfig":
        """Read the ``config`` of an evaluate job.

        Raises:
            EvaluationError: A value is not possible (``config-invalid``).
        """
        try:
            config = cls(**{**document, "backend": BackendConfig.from_json(document.get("backend", {}))})
        except (TypeError, ValueError) as error:
            raise EvaluationError(
                "config-invalid", f"the evaluation's configuration is not valid: {error}"
            ) from error
        if config.subject not in ("baseline", "candidate") or config.form not in ("merged", "adapter"):
            raise EvaluationError(
                "config-invalid", f"no evaluation of subject {config.subject!r} in form {config.form!r}"
            )
        return config


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """Where the report is and what it says in short.

    Attributes:
        report: Folder with examples.jsonl and metrics.json.
        num_rows: Rows of examples.jsonl.
        values: Summary of the numbers: scores by set, parity counts, seconds; None where not computed.
    """

    report: Path
    num_rows: int
    values: Mapping[str, Any]


def run_evaluation(
    *,
    base_model: Path,
    suite: Path,
    adapter: Path | None,
    merged_model: Path | None,
    baseline_report: Path | None,
    config: EvaluationConfig,
    workdir: Path,
    output: Path,
    report: ProgressReporter,
    leakage: Mapping[str, Any] | None = None,
) -> EvaluationResult:
    """Run one evaluation.

    Args:
        base_model: Folder of the base model; its tokenizer and chat template render every prompt.
        suite: Folder of the suite (see ``suite_folder``).
        adapter: Folder of the adapter; needed to evaluate or to compare the adapter form.
        merged_model: Folder of the merged model; needed to evaluate or to compare the merged form.
        baseline_report: Report folder of the baseline run, which says how the base answers the canaries;
            None leaves ``num_differ_from_base`` unknown.
        config: Subject, form and engine.
        workdir: Kept phases: requests, outputs, engine logs.
        output: Report folder, made here.
        report: Gets progress, log lines and scores.
        leakage: ``{"status", "pairs"}`` as the training engine computed it; None is recorded as unknown.

    Raises:
        SuiteError: The suite is at fault.
        PromptError: The base model's tokenizer or chat template is at fault.
        EngineError: An engine failed.
        EvaluationError: A needed input is missing (``input-missing``).
    """
    started = time.monotonic()
    report.progress(0.0, "reading the suite")
    loaded = load_suite_folder(suite)
    chat = build_chat_format(load_tokenizer(base_model))
    plan = build_plan(loaded, chat, subject=config.subject, max_model_len=config.backend.max_model_len)
    models = _models(config, base_model, adapter, merged_model)
    prepared = time.monotonic()
    results = _run_phases(models, plan, chat, config, workdir, report)
    judged: Form = "base" if config.subject == "baseline" else config.form
    rows = _build_rows(loaded, chat, plan, judged, results)
    metrics = {
        "schema_version": SCHEMA_VERSION,
        "subject": config.subject,
        "form": judged,
        "suite_digest": loaded.definition.digest,
        "engine_fingerprint": dict(results[judged].fingerprint),
        "chat_template_sha256": chat.template_sha256,
        "sets": aggregate_sets(rows, judged),
        "canary_parity": _parity(plan, judged, results, rows, baseline_report, config),
        "leakage": dict(leakage) if leakage is not None else {"status": "unknown", "pairs": []},
        "constant_answer_warnings": constant_answer_warnings(rows, judged),
        "timing": {
            "prepare_seconds": round(prepared - started, 3),
            "phases": {form: dict(result.timing) for form, result in results.items()},
            "total_seconds": round(time.monotonic() - started, 3),
        },
    }
    return _write_report(output, rows, metrics, report)


def read_report(folder: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Read a report folder back: metrics and rows.

    Raises:
        EvaluationError: A file is missing or is not JSON (``report-unreadable``).
    """
    try:
        metrics = json.loads((folder / METRICS_FILE).read_text(encoding="utf-8"))
        return metrics, list(read_lines(folder / EXAMPLES_FILE))
    except (OSError, ValueError) as error:
        raise EvaluationError(
            "report-unreadable", f"the report {folder.name} cannot be read: {error}"
        ) from error


@dataclass(frozen=True, slots=True)
class _Model:
    """A form of the model that is run, and the folders that make it."""

    form: Form
    model: Path
    adapter: Path | None
    runs_all_sets: bool


def _models(
    config: EvaluationConfig, base_model: Path, adapter: Path | None, merged_model: Path | None
) -> list[_Model]:
    """Return the forms to run: for a candidate the other form first, on the canaries alone."""
    if config.subject == "baseline":
        return [_Model("base", base_model, None, runs_all_sets=True)]
    folders: dict[ShippingForm, Path | None] = {"adapter": adapter, "merged": merged_model}
    if folders[config.form] is None:
        needed = "an adapter" if config.form == "adapter" else "a merged model"
        raise EvaluationError("input-missing", f"to evaluate the {config.form} form, {needed} is needed")
    models = []
    if adapter is not None:
        models.append(_Model("adapter", base_model, adapter, runs_all_sets=config.form == "adapter"))
    if merged_model is not None:
        models.append(_Model("merged", merged_model, None, runs_all_sets=config.form == "merged"))
    return sorted(models, key=lambda model: model.runs_all_sets)


def _run_phases(
    models: Sequence[_Model],
    plan: Plan,
    chat: ChatFormat,
    config: EvaluationConfig,
    workdir: Path,
    report: ProgressReporter,
) -> dict[Form, PhaseResult]:
    results: dict[Form, PhaseResult] = {}
    for number, model in enumerate(models):
        part = PartReporter(
            report, 0.05 + 0.9 * number / len(models), 0.05 + 0.9 * (number + 1) / len(models), model.form
        )
        spec = _phase_spec(model, plan, chat, config, workdir)
        results[model.form] = run_phase(workdir / "phases" / model.form, spec, part)
        timing = results[model.form].timing
        part.log(
            "info", f"{len(spec.generations)} outputs and {len(spec.continuations)} options, {dict(timing)}"
        )
    return results


def _phase_spec(
    model: _Model, plan: Plan, chat: ChatFormat, config: EvaluationConfig, workdir: Path
) -> PhaseSpec:
    planned = plan.examples if model.runs_all_sets else plan.of("canary")
    generations = generation_requests(planned, chat, num_logprobs=CANARY_LOGPROBS)
    if config.subject == "candidate":
        again = _repeated(plan, config)
        generations += generation_requests(again, chat, num_logprobs=CANARY_LOGPROBS, suffix=_REPEAT_SUFFIX)
    return PhaseSpec(
        model=model.model,
        adapter=None if model.adapter is None else prepare_adapter(model.adapter, workdir / "adapters"),
        backend=config.backend,
        generations=generations,
        continuations=continuation_requests(planned),
    )


def _repeated(plan: Plan, config: EvaluationConfig) -> tuple[PlannedExample, ...]:
    answered = [planned for planned in plan.of("canary") if not planned.is_refused]
    return tuple(answered[: config.num_noise_repeats])


def _build_rows(
    suite: Suite, chat: ChatFormat, plan: Plan, judged: Form, results: Mapping[Form, PhaseResult]
) -> list[dict[str, Any]]:
    builder = RowBuilder(suite.definition, SchemaValidator(suite.definition.output_schema), chat)
    rows: list[dict[str, Any]] = []
    for form, result in results.items():
        planned = plan.examples if form == judged else plan.of("canary")
        rows.extend(builder.build(item, form, result) for item in planned)
    return rows


def _parity(
    plan: Plan,
    judged: Form,
    results: Mapping[Form, PhaseResult],
    rows: Sequence[dict[str, Any]],
    baseline_report: Path | None,
    config: EvaluationConfig,
) -> dict[str, Any] | None:
    """Compare the two forms; None for a baseline and when there is only one form. Notes the outcome in the
    rows.
    """
    if "adapter" not in results or "merged" not in results:
        return None
    canaries = plan.of("canary")
    answered = [planned for planned in canaries if not planned.is_refused]
    adapter, merged = results["adapter"].generations, results["merged"].generations
    comparisons = [
        compare_outputs(p.example.id, adapter[p.key], merged[p.key], config.near_tie_nats) for p in answered
    ]
    by_id = {comparison.example_id: comparison for comparison in comparisons}
    for row in rows:
        if row["role"] == "canary" and row["example_id"] in by_id:
            row["details"]["parity"] = by_id[row["example_id"]].to_json()
    shipped = {p.example.id: results[judged].generations[p.key] for p in answered}
    return summarise_parity(
        comparisons,
        noise_floor=_noise_floor(plan, config, (adapter, merged)),
        num_differ_from_base=None
        if baseline_report is None
        else count_differences(shipped, _baseline_canaries(baseline_report), config.near_tie_nats),
        num_refused=len(canaries) - len(answered),
        near_tie_nats=config.near_tie_nats,
    )


def _noise_floor(
    plan: Plan, config: EvaluationConfig, forms: Sequence[Mapping[str, GenerationOutput]]
) -> list[CanaryComparison] | None:
    repeated = _repeated(plan, config)
    if not repeated:
        return None
    return [
        compare_outputs(p.example.id, outputs[p.key], outputs[p.key + _REPEAT_SUFFIX], config.near_tie_nats)
        for outputs in forms
        for p in repeated
    ]


def _baseline_canaries(folder: Path) -> dict[str, Sequence[int]]:
    _, rows = read_report(folder)
    return {
        row["example_id"]: row["details"]["token_ids"]
        for row in rows
        if row["role"] == "canary" and row["form"] == "base" and "token_ids" in row["details"]
    }


def _write_report(
    output: Path, rows: Sequence[Mapping[str, Any]], metrics: Mapping[str, Any], report: ProgressReporter
) -> EvaluationResult:
    output.mkdir(parents=True, exist_ok=True)
    write_lines_atomically(output / EXAMPLES_FILE, rows)
    write_json_atomically(output / METRICS_FILE, metrics)
    values = _summary(metrics)
    report.metric(0, {name: value for name, value in values.items() if isinstance(value, int | float)})
    report.progress(1.0, "evaluated")
    return EvaluationResult(output, len(rows), values)


def _summary(metrics: Mapping[str, Any]) -> dict[str, Any]:
    sets, parity = metrics["sets"], metrics["canary_parity"] or {}
    return {
        "holdout_score": sets["holdout"]["score"],
        "ood_score": sets["ood"]["score"],
        "holdout_strict_parse_rate": sets["holdout"]["strict_parse_rate"],
        "ood_strict_parse_rate": sets["ood"]["strict_parse_rate"],
        "regression_scores": {
            name: dimension["score"] for name, dimension in sets["regression"]["dimensions"].items()
        },
        "canaries_compared": parity.get("num_compared"),
        "canaries_diverged": parity.get("num_diverged"),
        "canaries_differ_from_base": parity.get("num_differ_from_base"),
        "total_seconds": metrics["timing"]["total_seconds"],
    }
