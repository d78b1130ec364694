import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from training.engine.data.program import commands, make, review  # noqa: F401 (they register themselves)
from training.engine.data.program.app import app
from training.engine.data.reviewing import read_review


def run(*arguments: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(arguments), input=stdin)


def row(number: int) -> dict[str, Any]:
    words = " ".join(f"w{number * 7 + offset}" for offset in range(6))
    return {"question": f"help {words}", "label": ("refund", "login")[number % 2], "customer": number // 2}


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    path = tmp_path / "raw.jsonl"
    path.write_text("".join(f"{json.dumps(row(number))}\n" for number in range(40)))
    return path


COLUMNS = ("--column", "input=question", "--column", "answer=label", "--column", "group=customer")


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_inspect_suggests_the_columns_of_an_unknown_shape(tmp_path: Path) -> None:
    path = tmp_path / "raw.jsonl"
    path.write_text('{"text": "my app is slow", "label": "bug"}\n')
    result = run("inspect", str(path))
    assert result.exit_code == 3
    assert "--column input=text --column answer=label" in result.output
    assert "shape-unsure" in result.output


def test_inspect_writes_nothing(raw: Path) -> None:
    before = set(raw.parent.iterdir())
    result = run("inspect", str(raw), *COLUMNS)
    assert result.exit_code == 0, result.output
    assert "40 rows: 40 examples, 0 bad" in result.output
    assert set(raw.parent.iterdir()) == before


def test_clean_writes_sets_report_and_card(raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("clean", str(raw), *COLUMNS, "--out", str(out), "--json")
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in out.iterdir()) == [
        "bad_rows.jsonl",
        "card.md",
        "dropped.jsonl",
        "report.json",
        "sets",
        "understanding.json",
    ]
    document = json.loads(result.stdout)
    assert document["sets"]["train"]["num_examples"] == len(lines_of(out / "sets/train.jsonl"))


def test_a_full_folder_is_not_written_into(raw: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    result = run("clean", str(raw), *COLUMNS, "--out", str(tmp_path / "out"))
    assert result.exit_code == 3
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]
    assert not list(tmp_path.glob(".partial-*"))


def test_bad_rows_end_with_1_and_everything_is_written(raw: Path, tmp_path: Path) -> None:
    raw.write_text(raw.read_text() + "{broken\n")
    out = tmp_path / "out"
    result = run("clean", str(raw), *COLUMNS, "--out", str(out))
    assert result.exit_code == 1
    assert [item["row"] for item in lines_of(out / "bad_rows.jsonl")] == [41]


def test_split_keeps_groups_together(raw: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    result = run("split", str(raw), *COLUMNS, "--out", str(out), "--holdout", "0.25")
    assert result.exit_code == 0, result.output
    groups = [
        {line["group"] for line in lines_of(out / f"sets/{role}.jsonl")} for role in ("train", "holdout")
    ]
    assert groups[0].isdisjoint(groups[1])
    assert len(lines_of(out / "sets/holdout.jsonl")) == 10


def test_leakage_between_files_is_shown_and_ends_with_1(tmp_path: Path) -> None:
    def write(name: str, *texts: str) -> str:
        rows = [
            {
                "id": f"{name}-{number}",
                "messages": [
                    {"role": "user", "content": text},
                    {"role": "assistant", "content": "yes"},
                ],
            }
            for number, text in enumerate(texts)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(item)}\n" for item in rows))
        return str(tmp_path / f"{name}.jsonl")

    train = write("train", "the app is slow today", "where is my invoice")
    ood = write("ood", "The app is slow today!", "something else")
    result = run("leakage", train, ood)
    assert result.exit_code == 1
    assert "train train-0 = ood ood-0" in " ".join(result.output.split())
    assert run("leakage", ood, write("other", "nothing shared here")).exit_code == 0


def test_a_recipe_with_faults_names_all_of_them(raw: Path, tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text("clean: [drop_emty]\nseed: -1\n")
    result = run("clean", str(raw), "--recipe", str(recipe), "--out", str(tmp_path / "out"))
    assert result.exit_code == 3
    assert "clean[0]" in result.output
    assert "recipe.seed" in result.output
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("name", "text"),
    [("r.toml", "seed = 7"), ("r.yaml", "seed: 7"), ("r.json", '{"seed": 7}')],
)
def test_recipes_in_three_forms(raw: Path, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    result = run("inspect", str(raw), *COLUMNS, "--recipe", str(tmp_path / name), "--json")
    assert json.loads(result.stdout)["recipe"]["seed"] == 7


def test_a_review_is_kept_and_applied(raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "out"
    run("clean", str(raw), *COLUMNS, "--out", str(out))
    ready = out / "sets/train.jsonl"
    keys = iter("gbfsq")
    monkeypatch.setattr("training.engine.data.program.review.click.getchar", lambda: next(keys))
    monkeypatch.setattr("training.engine.data.program.review.click.edit", lambda *_, **__: "better\n")
    result = run("review", str(ready), "--num", "10", "--reviewer", "Ann")
    assert result.exit_code == 0, result.output
    review_file = read_review(out / "sets/train.jsonl.review.json")
    assert review_file.count() == {"good": 1, "bad": 1, "fix": 1}
    applied = tmp_path / "applied.jsonl"
    assert run("review", str(ready), "--apply", str(applied), "--confirm").exit_code == 0
    lines = lines_of(applied)
    assert len(lines) == len(lines_of(ready)) - 1
    assert sum(line.get("confirmed_by") == "Ann" for line in lines) == 2
    [fixed] = [line for line in lines if line.get("reference_source") == "person"]
    assert fixed["messages"][-1]["content"] == "better"


def test_verdicts_on_other_bytes_are_refused(
    raw: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    run("clean", str(raw), *COLUMNS, "--out", str(out))
    ready = out / "sets/train.jsonl"
    keys = iter("gq")
    monkeypatch.setattr("training.engine.data.program.review.click.getchar", lambda: next(keys))
    run("review", str(ready))
    ready.write_text("".join(ready.read_text().splitlines(keepends=True)[:-1]))
    result = run("review", str(ready), "--apply", str(tmp_path / "applied.jsonl"))
    assert result.exit_code == 3
    assert "review-of-other-data" in result.output


def test_hostile_text_does_nothing_in_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "raw.jsonl"
    row_text = {"prompt": "\x1b[31m[bold]red\u202e", "completion": "ok"}
    path.write_text("".join(f"{json.dumps({**row_text, 'id': str(number)})}\n" for number in range(3)))
    result = run("inspect", str(path))
    assert "\x1b[31m" not in result.output
    assert "\u202e" not in result.output
    assert "[bold]" in result.output
