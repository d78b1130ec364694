import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tests.training.engine.memory.test_model_files import write_weights
from tests.training.engine.memory.test_model_shape import LLAMA2_7B
from training.engine.memory.program import app, main


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA2_7B))
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def words_of(result: Result) -> str:
    """The output without line breaks, which the terminal's width decides."""
    return re.sub(r"\s+", " ", result.output)


def test_a_ledger_for_each_method(folder: Path) -> None:
    result = run(folder)
    assert result.exit_code == 0
    text = words_of(result)
    assert "LoRA: 18.7-19.7 GB, 39,976,960 parameters trained" in text
    assert "6,738,415,616 frozen parameters x 2 bytes" in text
    assert "full fine-tuning: 112.4-147.4 GB" in text
    assert "QLoRA: " in text
    assert "Name cards with --card" in text


def test_cards_and_what_fits_them(folder: Path) -> None:
    result = run(folder / "config.json", "--card", "24GB", "--card", "80GB x 8")
    assert result.exit_code == 0
    text = words_of(result)
    assert "24 GB: LoRA and QLoRA fit." in text
    assert "80 GB x 8: full fine-tuning, LoRA and QLoRA fit." in text
    assert "sharded: fits," in text


def test_ends_with_1_and_says_what_to_change_where_nothing_fits(folder: Path) -> None:
    result = run(folder, "--card", "20GB", "--method", "lora", "--batch", 16)
    assert result.exit_code == 1
    text = words_of(result)
    assert "20 GB: Nothing fits as it is." in text
    assert "1. batch 1 with 16 times the accumulation: the same steps: 19.7 GB, which fits" in text
    hopeless = run(folder, "--card", "4GB")
    assert hopeless.exit_code == 1
    assert "Nothing fits, whatever is changed." in words_of(hopeless)


def test_json_holds_the_options(folder: Path) -> None:
    options = ("--tokens", 1024, "--batch", 2, "--rank", 8, "--layers", 21, "--no-checkpointing")
    result = run(folder, *options, "--short-moments", "--target-module", "q_proj", "--card", "24GB", "--json")
    document = json.loads(result.stdout)
    assert document["request"] == {
        "method": "all",
        "cards": ["24 GB"],
        "tokens": 1024,
        "batch_size": 2,
        "rank": 8,
        "target_modules": ["q_proj"],
        "layers": 21,
        "checkpointing": False,
        "short_moments": True,
    }
    # 21 blocks x 8 x (4096 + 4096).
    assert document["methods"][1]["num_trained"] == 21 * 8 * 8192


def test_doubts_are_told(folder: Path) -> None:
    write_weights(folder / "model.safetensors", 1000)
    assert "parameters-differ: The weight files hold 1,000 parameters" in words_of(run(folder))


def test_every_fault_at_once_and_3(folder: Path) -> None:
    result = run(folder, "--card", "A100", "--tokens", 0, "--method", "prefix")
    assert result.exit_code == 3
    for code in ("[card-unreadable]", "tokens: is 0", "method: is 'prefix'"):
        assert code in words_of(result)
    (folder / "config.json").write_text("{}")
    result = run(folder)
    assert result.exit_code == 3
    assert words_of(result).count("model-key-missing") == 5


def test_a_usage_error_ends_with_3(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ASSAY_PROGRAM_NAME", "assay train estimate")
    with pytest.raises(SystemExit) as caught:
        main(["/nowhere"])
    assert caught.value.code == 3
    assert "assay train estimate" in capsys.readouterr().err


def test_it_starts_without_what_training_needs(folder: Path) -> None:
    script = (
        "import sys; from training.engine.memory.program import main\n"
        "try: main([sys.argv[1], '--json'])\n"
        "except SystemExit: pass\n"
        "heavy = {'torch', 'transformers', 'peft', 'django', 'pyarrow', 'numpy'} & set(sys.modules)\n"
        "print(sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(folder)],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[4])},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout)["model"]["model_type"] == "llama"
    assert done.stderr.strip() == "[]"
