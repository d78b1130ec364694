"""The program, in this process; what a line looks like is left to its eye-readers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.fixtures.models import random_llama
from training.engine.lint.program import app

ROOT = Path(__file__).resolve().parents[4]
TICKETS = ROOT / "examples" / "tickets"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def codes(result: Result) -> dict[str, str]:
    return {item["code"]: item["severity"] for item in json.loads(result.stdout)["findings"]}


def test_the_example_is_judged_honestly() -> None:
    result = run(
        TICKETS / "training.json", "--data", TICKETS / "train.jsonl", "--general", TICKETS / "general.jsonl",
        "--holdout", TICKETS / "holdout.jsonl", "--json",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    # lr 1e-3, an evaluation every 1000 of 250 steps, no dropout on 500 rows in 2 passes, batches of 4.
    assert codes(result) == {
        "learning-rate-above-usual": "warning",
        "held-out-loss-only-once": "warning",
        "dropout-off-on-small-data": "warning",
        "small-effective-batch": "info",
    }
    plan = json.loads(result.stdout)["plan"]
    assert (plan["num_rows"], plan["num_steps"], plan["general_fraction"]) == (500, 250, 0.2)


def test_with_a_base_the_rows_are_measured(tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text("[training]\nmax_length_tokens = 64\n[lora]\nlayers = {first = 1, last = 7}\n")
    result = run(
        config, "--data", TICKETS / "train.jsonl", "--base", random_llama(), "--card-gb", "8", "--json"
    )
    assert result.exit_code == 1
    found = codes(result)
    assert found["layers-unsuitable"] == "error"  # the model has 2 blocks
    assert found["no-held-out-set"] == "warning"
    assert found["checkpointing-not-needed"] == "info"
    document = json.loads(result.stdout)
    assert document["unchecked"] == []
    assert document["plan"]["longest_tokens"] >= document["plan"]["common_tokens"] > 20


def test_what_is_not_known_is_said_in_words(tmp_path: Path) -> None:
    config = tmp_path / "c.json"
    config.write_text("{}")
    result = run(config)
    assert result.exit_code == 0
    assert "No findings." in result.stdout
    assert "Not checked, for want of" in result.stdout
    assert "no-held-out-set" in result.stdout


def test_a_faulty_configuration_ends_with_three_and_all_faults(tmp_path: Path) -> None:
    config = tmp_path / "c.json"
    config.write_text('{"lora": {"rank": 8}, "training": {"learning_rate": -1}}')
    result = run(config)
    assert result.exit_code == 3
    assert "It is called r here." in result.stderr
    assert "training.learning_rate" in result.stderr


def test_the_module_ends_usage_errors_with_three(monkeypatch: pytest.MonkeyPatch) -> None:
    from training.engine.lint import program

    with pytest.raises(SystemExit) as caught:
        program.main(["--nonsense"])
    assert caught.value.code == 3


def test_without_a_base_the_base_install_is_enough() -> None:
    code = (
        "import sys, training.engine.lint.__main__\n"
        "extra = ['torch', 'transformers', 'peft', 'jinja2', 'yaml', 'numpy', 'django']\n"
        "print([name for name in extra if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "[]\n"
