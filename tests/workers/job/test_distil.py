import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from evaluation.engine.backends.base import BackendConfig
from evaluation.engine.errors import EngineError
from registry.artifacts.dataset_lines import check_dataset_lines
from tests.fixtures.models import random_llama, smollm2_tokenizer
from tests.workers.job.text_generators.scripted import ScriptedBackend
from workers.job import distil, model_programs

END = ScriptedBackend.END
SCHEMA = {"type": "object", "properties": {"kind": {"enum": ["refund", "login"]}}, "required": ["kind"]}
FILES = ["bad_rows.jsonl", "distilled.jsonl", "pairs_for_people.jsonl", "report.json", "unanswered.jsonl"]


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    path = tmp_path / "tickets.csv"
    path.write_text("question,label\nmoney back,\nno access,login\nwhat is this,\n")
    return path


@pytest.fixture
def settings_file(tmp_path: Path) -> Path:
    path = tmp_path / "settings.json"
    document = {
        "distillation": {"num_candidates": 2, "max_tokens": 8},
        "teachers": [{"name": "tiny", "instruction_variants": ["Label: {schema}", "Say the kind: {schema}"]}],
        "backend": {"max_model_len": 256, "max_num_seqs": 4},
        "intake": {"columns": {"input": "question", "answer": "label"}},
    }
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(SCHEMA))
    return path


def run(*arguments: Any) -> Result:
    return CliRunner().invoke(distil.app, [str(argument) for argument in arguments])


def use_script(monkeypatch: pytest.MonkeyPatch, answer: Callable[[str], str]) -> list[ScriptedBackend]:
    made: list[ScriptedBackend] = []

    def make(model: Path, config: BackendConfig, *, scratch: Path) -> ScriptedBackend:
        assert model.is_dir() and scratch.is_dir() and config.max_num_seqs == 4
        made.append(ScriptedBackend(smollm2_tokenizer(), answer))
        return made[-1]

    monkeypatch.setattr(model_programs, "ProcessBackend", make)
    return made


def label(prompt: str) -> str:
    """The right kinds; nothing of use for the third input."""
    if "money" in prompt:
        return f'{{"kind": "refund"}}{END}'
    return f'```json\n{{"kind": "login"}}\n```{END}' if "access" in prompt else f"Well, it depends.{END}"


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_examples_unanswered_pairs_and_report(
    inputs: Path, settings_file: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = use_script(monkeypatch, label)
    out = tmp_path / "out"
    options = ("--settings", settings_file, "--schema", schema, "--backend", "transformers")
    result = run(inputs, "--teacher", f"tiny={random_llama()}", *options, "--out", out)
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir()) == FILES
    examples = lines_of(out / "distilled.jsonl")
    assert [line["messages"][-1]["content"] for line in examples] == ['{"kind":"refund"}', '{"kind":"login"}']
    origin = examples[1]["origin"]
    assert (origin["kind"], origin["teacher"], origin["row"]) == ("distilled", "tiny", 2)
    assert origin["generator"]["engine"] == "f" * 64
    (left,) = lines_of(out / "unanswered.jsonl")
    assert left["example"]["messages"][0] == {"role": "user", "content": "what is this"}
    assert [candidate["reasons"] for candidate in left["candidates"]] == [["not-json"]] * 2
    assert {pair["example_id"] for pair in lines_of(out / "pairs_for_people.jsonl")} == {
        line["id"] for line in examples
    }
    report = json.loads((out / "report.json").read_text())
    assert report["distillation"]["num_answers_replaced"] == 1
    assert report["engines"][0]["num_prompts"] == 6
    assert str(tmp_path) not in json.dumps(report) and str(random_llama()) not in json.dumps(report)
    with (out / "distilled.jsonl").open("rb") as file:
        assert check_dataset_lines(file, role="train").is_valid
    # One call for both instructions and all inputs.
    assert [len(call) for call in made[0].calls] == [6]


def test_the_same_again_gives_the_same_bytes(
    inputs: Path, settings_file: Path, schema: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_script(monkeypatch, label)
    options = ("--settings", settings_file, "--schema", schema, "--teacher", f"tiny={random_llama()}")
    for name in ("first", "second"):
        assert run(inputs, *options, "--out", tmp_path / name).exit_code == 0
    for name in FILES:
        assert (tmp_path / "first" / name).read_bytes() == (tmp_path / "second" / name).read_bytes()


def test_teachers_of_one_model_share_its_engine_and_a_judge_is_asked(
    inputs: Path, settings_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answer(prompt: str) -> str:
        if "Which answer is better" in prompt:
            return f"A{END}"
        return f"It is about {'one' if 'Label' in prompt else 'two'}.{END}"

    made = use_script(monkeypatch, answer)
    teachers = ("--teacher", f"tiny={random_llama()}", "--teacher", f"other={random_llama()}/")
    result = run(
        inputs, *teachers, "--judge", random_llama(), "--settings", settings_file, "--limit", 1, "--json",
        "--out", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert len(made) == 1
    done = json.loads(result.stdout)
    assert done["inputs"]["num_inputs"] == 1
    assert done["distillation"]["judge"]["num_votes"] == 2
    assert done["distillation"]["is_judge_a_teacher"]
    assert [source["teacher"] for source in done["distillation"]["sources"]] == ["tiny", "other"]


def test_prompts_that_are_too_long_are_named_and_the_others_answered(
    inputs: Path, settings_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_script(monkeypatch, lambda prompt: f"Fine.{END}")
    inputs.write_text(f"question,label\nhello there,\n{'long ' * 300},\n")
    out = tmp_path / "out"
    result = run(inputs, "--teacher", f"tiny={random_llama()}", "--settings", settings_file, "--out", out)
    assert result.exit_code == 0, result.output
    (left,) = lines_of(out / "unanswered.jsonl")
    assert [candidate["reasons"] for candidate in left["candidates"]] == [["prompt-too-long"]] * 2
    assert len(lines_of(out / "distilled.jsonl")) == 1
    assert "2 of 4 prompts were too long; raise backend.max_model_len" in " ".join(result.stderr.split())


def test_nothing_made_or_bad_rows_end_with_1(
    inputs: Path, settings_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_script(monkeypatch, lambda prompt: "cut off in the")
    options = ("--teacher", f"tiny={random_llama()}", "--settings", settings_file)
    assert run(inputs, *options, "--out", tmp_path / "none").exit_code == 1
    assert (tmp_path / "none" / "distilled.jsonl").read_bytes() == b""
    use_script(monkeypatch, lambda prompt: f"Fine.{END}")
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"question": "hello", "label": "login"}\n{broken\n')
    result = run(rows, *options, "--out", tmp_path / "bad")
    assert result.exit_code == 1
    assert len(lines_of(tmp_path / "bad" / "bad_rows.jsonl")) == 1
    assert len(lines_of(tmp_path / "bad" / "distilled.jsonl")) == 1


def test_what_is_refused_leaves_nothing(
    inputs: Path, settings_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(prompt: str) -> str:
        raise EngineError(
            "engine-killed", "the engine was killed", failure_class="infrastructure", exit_code=-9,
            log_tail="first\nlast words",
        )  # fmt: skip

    use_script(monkeypatch, fail)
    before = set(tmp_path.iterdir())
    options = ("--settings", settings_file, "--out", tmp_path / "out")
    result = run(inputs, "--teacher", f"tiny={random_llama()}", *options)
    assert result.exit_code == 3
    assert "last words" in result.stderr and "engine-killed" in result.stderr
    result = run(inputs, "--teacher", f"tiny={tmp_path / 'none'}", *options)
    assert (result.exit_code, "model-missing" in result.stderr) == (3, True)
    result = run(inputs, "--teacher", f"tiny={tmp_path}", *options)
    assert (result.exit_code, "model-unusable" in result.stderr) == (3, True)
    inputs.write_text("question,label\n")
    result = run(inputs, "--teacher", f"tiny={random_llama()}", *options)
    assert (result.exit_code, "no-inputs" in result.stderr) == (3, True)
    assert set(tmp_path.iterdir()) == before


def test_a_full_folder_is_not_written_into(inputs: Path, settings_file: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    options = ("--teacher", f"tiny={random_llama()}", "--settings", settings_file, "--out", tmp_path / "out")
    result = run(inputs, *options)
    assert (result.exit_code, "target-not-empty" in result.stderr) == (3, True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_a_real_engine_in_processes_of_its_own(inputs: Path, settings_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("--settings", settings_file, "--backend", "transformers", "--limit", 2, "--out", out)
    result = run(inputs, "--teacher", f"tiny={random_llama()}", *options)
    assert result.exit_code == 1, result.output  # a random model never stops, so nothing is complete
    (engine,) = json.loads((out / "report.json").read_text())["engines"]
    assert engine["fingerprint"]["backend"] == "transformers"
    assert (engine["num_prompts"], engine["num_cut"], engine["num_output_tokens"]) == (4, 4, 32)
    reasons = {
        reason
        for line in lines_of(out / "unanswered.jsonl")
        for candidate in line["candidates"]
        for reason in candidate["reasons"]
    }
    assert "unfinished" in reasons


@pytest.mark.engine
def test_vllm_in_processes_of_its_own(inputs: Path, settings_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ("--settings", settings_file, "--backend", "vllm", "--limit", 2, "--out", out)
    result = run(inputs, "--teacher", f"tiny={random_llama()}", *options)
    assert result.exit_code == 1, result.output
    (engine,) = json.loads((out / "report.json").read_text())["engines"]
    assert engine["fingerprint"]["backend"] == "vllm"
    assert (engine["num_prompts"], engine["num_cut"], engine["num_output_tokens"]) == (4, 4, 32)


def test_usage_errors_end_with_3(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("ASSAY_PROGRAM_NAME", "assay dataset")
    with pytest.raises(SystemExit) as end:
        distil.main(["--nonsense"])
    assert end.value.code == 3
    assert "assay dataset distil" in capsys.readouterr().err
