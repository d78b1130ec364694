import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evaluation.engine import evaluate
from evaluation.engine.backends.base import (
    BackendConfig,
    ContinuationScore,
    GenerationOutput,
    GenerationRequest,
)
from evaluation.engine.errors import EvaluationError
from evaluation.engine.evaluate import EvaluationConfig, EvaluationResult, read_report, run_evaluation
from evaluation.engine.phase import PhaseResult, PhaseSpec
from evaluation.engine.progress import ProgressReporter, SilentReporter
from tests.evaluation.engine.samples import write_lines, write_suite
from tests.evaluation.engine.test_adapter_source import write_adapter
from tests.fixtures.models import random_llama, smollm2_tokenizer

BACKEND = BackendConfig(name="transformers", max_model_len=512)
RIGHT = '{"type":"bug","urgency":"high"}'


class ScriptedEngine:
    """Stands in for the engine's process: answers by role and form, and notes what it was asked."""

    def __init__(self) -> None:
        self.specs: dict[str, PhaseSpec] = {}
        self.answers: dict[tuple[str, str], str] = {}

    def run_phase(self, folder: Path, spec: PhaseSpec, report: ProgressReporter) -> PhaseResult:
        form = folder.name
        self.specs[form] = spec
        report.progress(1.0, "done")
        return PhaseResult(
            generations={r.request_id: self.answer(form, r) for r in spec.generations},
            # The second option is likelier for every model.
            continuations={
                r.request_id: ContinuationScore(
                    request_id=r.request_id,
                    token_logprobs=(-1.0 if r.request_id.endswith("/1") else -9.0,),
                )
                for r in spec.continuations
            },
            fingerprint={"backend": "scripted", "digest": "f"},
            timing={"load_seconds": 1.0},
        )

    def answer(self, form: str, request: GenerationRequest) -> GenerationOutput:
        role = request.request_id.split(":")[0]
        text = self.answers.get((form, role), "Hello there" if form == "base" else RIGHT)
        ids = (*smollm2_tokenizer().encode(text, add_special_tokens=False), 2)
        return GenerationOutput(
            request_id=request.request_id,
            text=text,
            token_ids=ids,
            finish_reason="stop",
            num_prompt_tokens=len(request.prompt_token_ids),
            logprobs=tuple({token: -0.1} for token in ids) if request.num_logprobs else None,
        )


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> ScriptedEngine:
    scripted = ScriptedEngine()
    monkeypatch.setattr(evaluate, "run_phase", scripted.run_phase)
    return scripted


def run(tmp_path: Path, subject: str, **changes: Any) -> EvaluationResult:
    suite = tmp_path / "suite"
    if not suite.exists():
        write_suite(suite)
    arguments: dict[str, Any] = {
        "base_model": random_llama(),
        "suite": suite,
        "adapter": None if subject == "baseline" else write_adapter(tmp_path / "adapter"),
        "merged_model": None if subject == "baseline" else random_llama(),
        "baseline_report": None,
        "config": EvaluationConfig(subject=subject, backend=BACKEND, num_noise_repeats=2),  # type: ignore[arg-type]
        "workdir": tmp_path / "work",
        "output": tmp_path / f"report-{subject}",
        "report": SilentReporter(),
    }
    return run_evaluation(**{**arguments, **changes})


def rows_of(rows: Sequence[dict[str, Any]], role: str, form: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["role"] == role and row["form"] == form]


def test_a_baseline_run_is_one_phase_on_the_base(tmp_path: Path, engine: ScriptedEngine) -> None:
    result = run(tmp_path, "baseline")
    metrics, rows = read_report(result.report)
    assert list(engine.specs) == ["base"]
    assert engine.specs["base"].adapter is None
    assert len(rows) == result.num_rows == 3 + 3 + 2 + 3
    assert (metrics["subject"], metrics["form"], metrics["canary_parity"]) == ("baseline", "base", None)
    assert metrics["sets"]["holdout"]["score"] == 0.0
    assert metrics["sets"]["holdout"]["strict_parse_rate"] == 0.0
    assert metrics["leakage"] == {"status": "unknown", "pairs": []}
    assert rows_of(rows, "holdout", "base")[0]["messages"][0]["content"].startswith("Give JSON")


def test_a_candidate_run_judges_the_shipping_form_and_compares_the_canaries(
    tmp_path: Path, engine: ScriptedEngine
) -> None:
    baseline = run(tmp_path, "baseline")
    leakage = {"status": "checked", "pairs": []}
    result = run(tmp_path, "candidate", baseline_report=baseline.report, leakage=leakage)
    metrics, rows = read_report(result.report)
    adapter, merged = engine.specs["adapter"], engine.specs["merged"]
    assert adapter.adapter is not None
    assert adapter.adapter.rank == 8
    assert len(adapter.generations) == 3 + 2  # canaries, and two of them again
    assert len(merged.generations) == 3 + 3 + 1 + 3 + 2
    assert len(rows) == (3 + 3 + 2 + 3) + 3
    assert metrics["leakage"] == leakage
    # Half of the holdout references have urgency low: those answers are half right, the others right.
    assert [row["score"] for row in rows_of(rows, "holdout", "merged")] == [1.0, 0.5, 1.0]
    assert metrics["sets"]["holdout"]["score"] == pytest.approx(2.5 / 3)
    assert metrics["sets"]["holdout"]["schema_valid_rate"] == 1.0
    parity = metrics["canary_parity"]
    assert (parity["num_compared"], parity["num_agree"], parity["num_differ_from_base"]) == (3, 3, 3)
    assert (parity["noise_floor_compared"], parity["noise_floor_diverged"]) == (4, 0)
    assert result.values["holdout_score"] == metrics["sets"]["holdout"]["score"]


def test_a_choice_is_scored_by_likelihood(tmp_path: Path, engine: ScriptedEngine) -> None:
    _, rows = read_report(run(tmp_path, "candidate").report)
    choice, generated = rows_of(rows, "regression", "merged")
    assert (choice["finish_reason"], choice["output"], choice["passed"]) == ("scored", "four", True)
    assert choice["details"]["chosen"] == "B"
    assert choice["details"]["logprob_per_character"] == {"A": -9 / 5, "B": -1 / 4}
    assert (generated["finish_reason"], generated["score"]) == ("stop", 1.0)


def test_diverging_forms_are_named(tmp_path: Path, engine: ScriptedEngine) -> None:
    engine.answers["adapter", "canary"] = '{"type":"question","urgency":"high"}'
    metrics, rows = read_report(run(tmp_path, "candidate").report)
    assert metrics["canary_parity"]["num_diverged"] == 3
    assert metrics["canary_parity"]["diverged"] == ["c0", "c1", "c2"]
    assert metrics["canary_parity"]["num_differ_from_base"] is None  # no baseline report was given
    assert rows_of(rows, "canary", "adapter")[0]["details"]["parity"]["agreement"] == "diverged"


def test_the_adapter_form_can_be_the_one_that_ships(tmp_path: Path, engine: ScriptedEngine) -> None:
    config = EvaluationConfig(subject="candidate", form="adapter", backend=BACKEND)
    metrics, rows = read_report(run(tmp_path, "candidate", config=config).report)
    assert metrics["form"] == "adapter"
    assert len(rows_of(rows, "holdout", "adapter")) == 3
    assert rows_of(rows, "holdout", "merged") == []
    assert len(engine.specs["merged"].generations) == 3 + 3


def test_one_form_alone_leaves_parity_unknown(tmp_path: Path, engine: ScriptedEngine) -> None:
    metrics, _ = read_report(run(tmp_path, "candidate", adapter=None).report)
    assert metrics["canary_parity"] is None


def test_the_shipping_form_must_be_given(tmp_path: Path, engine: ScriptedEngine) -> None:
    with pytest.raises(EvaluationError) as error:
        run(tmp_path, "candidate", merged_model=None)
    assert error.value.code == "input-missing"


def test_a_refused_canary_is_a_row_and_no_comparison(tmp_path: Path, engine: ScriptedEngine) -> None:
    suite = write_suite(tmp_path / "suite")
    long = {"id": "long", "messages": [{"role": "user", "content": "word " * 600}]}
    short = {"id": "short", "messages": [{"role": "user", "content": ""}]}
    write_lines(suite / "canary.jsonl", [long, short])
    metrics, rows = read_report(run(tmp_path, "candidate").report)
    refused, answered = rows_of(rows, "canary", "merged")
    assert "refused" in refused["details"]
    assert (refused["output"], refused["num_output_tokens"]) == ("", 0)
    assert answered["parse"] == "strict"
    assert (metrics["canary_parity"]["num_compared"], metrics["canary_parity"]["num_refused"]) == (1, 1)


def test_what_no_database_can_hold_is_replaced(tmp_path: Path, engine: ScriptedEngine) -> None:
    engine.answers["merged", "holdout"] = '{"type": "\\ud800\\u0000", "urgency": "a"}'
    engine.answers["merged", "ood"] = "nul \x00"
    metrics, rows = read_report(run(tmp_path, "candidate").report)
    holdout, ood = rows_of(rows, "holdout", "merged")[0], rows_of(rows, "ood", "merged")[0]
    assert holdout["parse"] == "strict"
    assert holdout["fields"]["type"]["observed"] == "\ufffd\u2400"
    assert ood["output"] == "nul \u2400"
    assert metrics["sets"]["holdout"]["strict_parse_rate"] == 1.0


def test_rows_have_the_keys_of_the_contract(tmp_path: Path, engine: ScriptedEngine) -> None:
    result = run(tmp_path, "candidate")
    keys = {
        "example_id", "role", "form", "dimension", "category", "tags", "messages", "reference", "output",
        "finish_reason", "num_prompt_tokens", "num_output_tokens", "score", "passed", "parse", "schema_valid",
        "schema_errors", "fields", "behaviour", "details",
    }  # fmt: skip
    for line in (result.report / "examples.jsonl").read_text().splitlines():
        assert json.loads(line).keys() == keys


def test_configuration_is_read_from_json() -> None:
    config = EvaluationConfig.from_json(
        {"subject": "candidate", "form": "adapter", "backend": {"dtype": "float32"}}
    )
    assert (config.form, config.backend.dtype, config.backend.name) == ("adapter", "float32", "vllm")


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"subject": "other"},
        {"subject": "candidate", "form": "gguf"},
        {"subject": "baseline", "unknown": 1},
        {"subject": "baseline", "backend": {"name": "onnx"}},
    ],
)
def test_impossible_configurations_are_refused(document: dict[str, Any]) -> None:
    with pytest.raises(EvaluationError) as error:
        EvaluationConfig.from_json(document)
    assert error.value.code == "config-invalid"


def test_a_missing_report_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError) as error:
        read_report(tmp_path)
    assert error.value.code == "report-unreadable"
