import json
from pathlib import Path

import pytest

from training.engine.errors import DataInvalid
from training.engine.lint.data_facts import count_examples, read_training_examples
from training.engine.lint.plan import DataFacts


def write(path: Path, answers: list[str], role: str | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        {
            "id": f"{path.stem}-{index}",
            "messages": [{"role": "user", "content": "问题?"}, {"role": "assistant", "content": answer}],
            **({"role": role} if role else {}),
        }
        for index, answer in enumerate(answers)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_files_folders_and_general_data(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    write(folder / "a.jsonl", ["1", "2"])
    write(folder / "general" / "b.jsonl", ["3"])
    single = write(tmp_path / "c.jsonl", ["4"])
    marked = write(tmp_path / "d.jsonl", ["5"], role="general")
    general = write(tmp_path / "e.jsonl", ["6", "7"])
    examples = read_training_examples([folder, single, marked], [general])
    assert [example.is_general for example in examples] == [False, False, True, False, True, True, True]
    facts = count_examples(examples).facts
    assert facts == DataFacts(num_rows=7, general_fraction=pytest.approx(4 / 7), lengths=None)


def test_nothing_to_read(tmp_path: Path) -> None:
    assert count_examples(()).facts == DataFacts(num_rows=0)
    with pytest.raises(DataInvalid):
        read_training_examples([tmp_path], [])
