# ruff: noqa: RUF001 (full-width characters are what is tested)
import io
import json
from pathlib import Path
from typing import Any

import pytest

from training.engine.data.cleaning.duplicates import KINDS
from training.engine.data.cleaning.report import StepReport
from training.engine.data.cleaning.run import read_parameters, run_step
from training.engine.data.cleaning.step import StepContext
from training.engine.data.example_files import iterate_examples, write_examples
from training.engine.data.examples import ChatMessage, Example

DROP = KINDS[0]
WORDS = [f"w{i}" for i in range(40)]
LONG = " ".join(WORDS)
# 38 shingles; a changed last word leaves 37 of 39: 0.95.
NEAR = " ".join([*WORDS[:-1], "other"])
CHINESE = "您好，我上周在网上买的耳机收到以后左边没有声音，请帮我换一个新的，谢谢"


def example(name: str, text: str, answer: str | None = "done", system: str | None = None) -> Example:
    messages = [ChatMessage("system", system)] if system else []
    messages.append(ChatMessage("user", text))
    if answer is not None:
        messages.append(ChatMessage("assistant", answer))
    return Example(example_id=name, messages=tuple(messages))


def run(
    tmp_path: Path, examples: list[Example], **parameters: Any
) -> tuple[list[str], list[dict[str, Any]], StepReport]:
    source = write_examples(tmp_path / "source.jsonl", examples).path
    dropped = io.StringIO()
    report, written = run_step(
        DROP,
        read_parameters(DROP, parameters, "clean"),
        source=source,
        target=tmp_path / "target.jsonl",
        dropped=dropped,
        context=StepContext(seed=1, scratch=tmp_path),
    )
    kept = [item.example_id for item in iterate_examples(written.path)]
    return kept, [json.loads(line) for line in dropped.getvalue().splitlines()], report


def test_first_of_a_kind_is_kept(tmp_path: Path) -> None:
    kept, dropped, report = run(
        tmp_path,
        [
            example("a", LONG),
            example("b", CHINESE, "已经为您换货"),
            example("c", LONG.upper()),
            example("d", NEAR),
            example("e", CHINESE.replace("谢谢", "多谢"), "已经为您换货。"),
            example("f", LONG, "something else"),
            example("g", NEAR, "something else"),
        ],
    )
    assert kept == ["a", "b", "f"]
    assert [(line["example"]["id"], *line["reasons"], line["detail"]) for line in dropped] == [
        ("c", "exact-duplicate", "of a, similarity 1.00"),
        ("d", "near-duplicate", "of a, similarity 0.95"),
        # 32 letters make 28 shingles; one changed letter, the last but one, is in the last two: 26 of 30.
        ("e", "near-duplicate", "of b, similarity 0.87"),
        ("g", "near-duplicate", "of f, similarity 0.95"),
    ]
    assert report.facts["num_clusters"] == 3
    assert report.facts["largest_cluster"] == 3
    assert report.facts["boilerplate_fraction"] is None


def test_copies_of_a_near_duplicate_are_near_duplicates(tmp_path: Path) -> None:
    kept, dropped, _ = run(tmp_path, [example("a", LONG), example("b", NEAR), example("c", NEAR)])
    assert kept == ["a"]
    assert [line["reasons"] for line in dropped] == [["near-duplicate"], ["near-duplicate"]]


def test_punctuation_and_width(tmp_path: Path) -> None:
    kept, dropped, _ = run(
        tmp_path, [example("a", "好的，谢谢。"), example("b", "好的,谢谢"), example("c", "好的，ok谢谢。")]
    )
    assert kept == ["a", "c"]
    assert dropped[0]["reasons"] == ["near-duplicate"]


def test_json_answers_are_equal_or_not(tmp_path: Path) -> None:
    fields = {f"field number {i}": f"value number {i}" for i in range(40)}
    answers = [
        json.dumps({**fields, "urgent": "yes"}),
        json.dumps({"urgent": "yes", **fields}),
        json.dumps({**fields, "urgent": "no"}),
    ]
    examples = [example(name, LONG, answer) for name, answer in zip("abc", answers, strict=True)]
    assert run(tmp_path, examples)[0] == ["a", "c"]


def test_other_system_messages_are_other_tasks(tmp_path: Path) -> None:
    examples = [example("a", LONG, system="Sort it."), example("b", LONG, system="Shorten it.")]
    assert run(tmp_path, examples)[0] == ["a", "b"]
    assert run(tmp_path, examples, compare="input")[0] == ["a", "b"]


def test_only_inputs(tmp_path: Path) -> None:
    examples = [example("a", LONG, "one"), example("b", NEAR, '{"two": 2}'), example("c", "short", "one")]
    assert run(tmp_path, examples)[0] == ["a", "b", "c"]
    assert run(tmp_path, examples, compare="input")[0] == ["a", "c"]


def test_threshold(tmp_path: Path) -> None:
    examples = [example("a", LONG), example("b", NEAR)]
    assert run(tmp_path, examples, threshold=0.95)[0] == ["a", "b"]  # 37 / 39 = 0.9487
    assert run(tmp_path, examples, threshold=0.94)[0] == ["a"]


def test_empty_inputs_and_missing_answers(tmp_path: Path) -> None:
    kept, dropped, _ = run(
        tmp_path,
        [example("a", "", "x"), example("b", " ", "x"), example("c", LONG, None), example("d", NEAR, None)],
    )
    assert kept == ["a", "c"]
    assert [line["reasons"][0] for line in dropped] == ["exact-duplicate", "near-duplicate"]


def test_boilerplate_is_measured(tmp_path: Path) -> None:
    # 38 shingles of boilerplate, and one for each of the two own words at its end.
    examples = [example(f"e{i}", f"{LONG} a{i} b{i}") for i in range(20)]
    kept, _, report = run(tmp_path, examples)
    assert kept == ["e0"]
    assert report.facts["boilerplate_fraction"] == 0.95
    assert report.facts["largest_cluster"] == 20


def test_hostile_ids_are_escaped(tmp_path: Path) -> None:
    _, dropped, _ = run(tmp_path, [example("a\x1b[2J", LONG), example("b", LONG)])
    assert dropped[0]["detail"] == "of a\\x1b[2J, similarity 1.00"


def test_no_examples(tmp_path: Path) -> None:
    kept, dropped, report = run(tmp_path, [])
    assert (kept, dropped, report.facts["num_clusters"], report.facts["largest_cluster"]) == ([], [], 0, 0)


@pytest.mark.parametrize("batch", [1, 3])
def test_batches_change_nothing(tmp_path: Path, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("training.engine.data.cleaning.duplicates.BATCH_TEXTS", batch)
    kept, _, _ = run(
        tmp_path, [example(name, text) for name, text in zip("abcd", [LONG, "x", NEAR, "x"], strict=True)]
    )
    assert kept == ["a", "b"]
