"""A run with a scripted engine, one with a real one, and the program."""

import json
from pathlib import Path
from typing import Any

import pytest

from evaluation.engine.backends.base import BackendConfig, GenerationOutput, GenerationRequest
from evaluation.engine.phase import PhaseResult, PhaseSpec
from evaluation.engine.progress import ProgressReporter, SilentReporter
from evaluation.engine.triage import run as triage_run
from evaluation.engine.triage.errors import TriageInvalid
from evaluation.engine.triage.program import main
from evaluation.engine.triage.run import TriageResult, choose_best, run_triage
from evaluation.engine.triage.samples import parse_samples
from evaluation.engine.triage.settings import TriageConfig
from tests.evaluation.engine.triage.planted import Line, line
from tests.fixtures.models import random_llama, smollm2_tokenizer

LINES = [line(n, f"Ticket {n} about billing.", {"module": "billing"}) for n in range(12)]
RIGHT = '{"module": "billing"}'
BACKEND = BackendConfig(name="transformers", max_model_len=512).to_json()


def make_config(**changes: Any) -> TriageConfig:
    prompts = [
        {"name": "plain", "system_prompt": "Answer."},
        {"name": "strict", "system_prompt": "JSON only.", "few_shot": [{"user": "a", "assistant": RIGHT}]},
    ]
    return TriageConfig.from_json({"prompts": prompts, "max_tokens": 16, "backend": BACKEND, **changes})


def run(
    tmp_path: Path, lines: list[Line], config: TriageConfig, base: Path | None = None
) -> tuple[TriageResult, Path]:
    samples = parse_samples([json.dumps(item).encode() for item in lines])
    result = run_triage(
        base_model=base or random_llama(),
        samples=samples,
        config=config,
        workdir=tmp_path / "work",
        output=tmp_path / "report",
        report=SilentReporter(),
    )
    return result, tmp_path / "report"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Answers by request id; everything else is wrapped in words under "plain" and right under "strict"."""
    answers: dict[str, str] = {}

    def answer(request: GenerationRequest) -> GenerationOutput:
        default = RIGHT if request.request_id.startswith("1:") else f"Sure: {RIGHT}"
        text = answers.get(request.request_id, default)
        ids = (*smollm2_tokenizer().encode(text, add_special_tokens=False), 2)
        return GenerationOutput(
            request_id=request.request_id,
            text=text,
            token_ids=ids,
            finish_reason="stop",
            num_prompt_tokens=len(request.prompt_token_ids),
        )

    def run_phase(folder: Path, spec: PhaseSpec, report: ProgressReporter) -> PhaseResult:
        outputs = {request.request_id: answer(request) for request in spec.generations}
        return PhaseResult(
            generations=outputs,
            continuations={},
            fingerprint={"backend": "scripted"},
            timing={"load_seconds": 1.0},
        )

    monkeypatch.setattr(triage_run, "run_phase", run_phase)
    return answers


def test_the_best_prompt_is_taken_and_all_are_told(tmp_path: Path, script: dict[str, str]) -> None:
    script["1:3"] = "not json"
    result, folder = run(tmp_path, LINES, make_config())
    summary = json.loads((folder / "triage.json").read_text())
    assert summary["best_prompt"] == "strict"
    assert [(row["name"], row["num_passed"]) for row in summary["prompts"]] == [("plain", 0), ("strict", 11)]
    assert summary["prompts"][0]["kinds"] == {"format": 12}
    assert (result.verdict.advice.value, summary["verdict"]["num_failed"]) == ("prompt-is-enough", 1)
    items = [json.loads(text) for text in (folder / "items.jsonl").read_text().splitlines()]
    assert [item["position"] for item in items] == list(range(1, 13))
    assert (items[3]["outcome"], items[3]["output"]) == ("failed", "not json")
    assert items[0]["passed_by"] == ["strict"]
    assert [message["role"] for message in items[0]["messages"]] == ["system", "user", "assistant", "user"]


def test_equal_inputs_give_equal_bytes(tmp_path: Path, script: dict[str, str]) -> None:
    _, first = run(tmp_path / "a", LINES, make_config())
    _, second = run(tmp_path / "b", LINES, make_config())
    assert (first / "items.jsonl").read_bytes() == (second / "items.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([(3, 0.5), (4, 0.1)], 1),
        ([(3, 0.5), (3, 0.6)], 1),
        ([(3, 0.5), (3, 0.5)], 0),
        ([(0, None), (0, 0.1)], 1),
    ],
)
def test_choose_best(scores: list[tuple[int, float | None]], best: int) -> None:
    assert choose_best(scores) == best


def test_a_document_beyond_the_base_is_a_missing_capability(tmp_path: Path, script: dict[str, str]) -> None:
    # The random Llama reads 2048 tokens; "word " is at least one token each.
    backend = {**BACKEND, "max_model_len": 8192}
    lines = [*LINES[:-1], line(99, "word " * 2500, {"module": "billing"})]
    result, _ = run(tmp_path, lines, make_config(backend=backend))
    item = result.items[-1]
    assert (item["finish_reason"], item["sorting"]["kind"]) == ("not-asked", "missing-capability")
    assert item["sorting"]["signals"][0]["code"] == "context-exceeded"


def test_prompts_that_only_the_engine_cannot_take_are_refused(tmp_path: Path, script: dict[str, str]) -> None:
    lines = [*LINES, line(99, "word " * 600, "x"), line(98, "word " * 700, "x")]
    with pytest.raises(TriageInvalid) as caught:
        run(tmp_path, lines, make_config())
    assert caught.value.code == "prompt-too-long" and len(caught.value.faults) == 4  # two under two prompts


def test_the_program(tmp_path: Path, script: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    samples, plain = tmp_path / "samples.jsonl", tmp_path / "plain.txt"
    samples.write_text("".join(json.dumps(item) + "\n" for item in LINES))
    plain.write_text("Answer.")
    arguments = ["--base", str(random_llama()), "--samples", str(samples), "--prompt", str(plain)]
    assert main([*arguments, "--backend", "transformers", "--out", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "verdict: fine-tune" in text and "12 of 12 samples failed" in text and "format (0.95)" in text
    assert (tmp_path / "out" / "triage.json").is_file()
    assert main([*arguments, "--out", str(tmp_path / "out")]) == 3
    assert "output-not-empty" in capsys.readouterr().err
    assert main([*arguments, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["items"]) == 12
    samples.write_text('{"id": "\x1b[31m"}\n'.replace("\x1b", "\\u001b"))
    assert main(arguments) == 3
    assert "\x1b" not in capsys.readouterr().err
    with pytest.raises(SystemExit) as end:
        main(["--base", "nowhere"])
    assert end.value.code == 3


@pytest.mark.engine
def test_a_real_engine_of_a_model_that_knows_nothing(tmp_path: Path) -> None:
    result, folder = run(tmp_path, LINES, make_config())
    assert (result.verdict.num_failed, result.verdict.is_preliminary) == (12, True)
    assert result.summary["engine_fingerprint"]["backend"] == "transformers"
    assert all(item["sorting"]["kind"] is not None for item in result.items)
    assert (folder / "items.jsonl").is_file()
