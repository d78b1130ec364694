# ruff: noqa: RUF001 (full-width characters are what is tested)
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from training.engine.data.examples import ChatMessage, Example
from training.engine.data.leakage import check_leakage, find_leakage
from training.engine.data.shingles import jaccard, make_shingles, normalise
from training.engine.errors import DataInvalid

WORDS = [f"word{i}" for i in range(30)]
LONG = " ".join(f"w{i}" for i in range(40))
# 38 shingles; one changed last word leaves 37 shared of 39: 0.949.
NEAR = LONG.replace("w39", "other")


def example(name: str, text: str) -> Example:
    return Example(example_id=name, messages=(ChatMessage("system", "same"), ChatMessage("user", text)))


def make_texts(generator: random.Random, count: int) -> list[str]:
    return [" ".join(generator.choices(WORDS, k=generator.randint(1, 30))) for _ in range(count)]


def test_planted_pairs_are_found() -> None:
    chinese = "您好，我上周在网上买的耳机收到以后左边没有声音，请帮我换一个新的，谢谢"
    training = [
        example("t1", LONG),
        example("t2", "Where  is MY order？"),
        example("t3", chinese),
        example("t4", ""),
    ]
    report = find_leakage(
        training,
        {
            "holdout": [example("h1", NEAR), example("h2", "something else entirely here")],
            "ood": [example("o1", "where is my order?")],
            "canary": [example("c1", ""), example("c2", chinese.replace("谢谢", "多谢"))],
        },
    )
    found = [(pair.train_id, pair.role, pair.example_id, pair.kind) for pair in report.pairs]
    assert found == [
        ("t1", "holdout", "h1", "near"),
        ("t2", "ood", "o1", "exact"),
        ("t3", "canary", "c2", "near"),
    ]
    assert report.pairs[0].similarity == pytest.approx(37 / 39)


def test_agrees_with_brute_force() -> None:
    generator = random.Random(5)
    train_texts = make_texts(generator, 150)
    # Half of the evaluation texts are edited training texts.
    edited = []
    for text in train_texts[:60]:
        words = text.split()
        for _ in range(generator.randint(0, 2)):
            words[generator.randrange(len(words))] = generator.choice(WORDS)
        edited.append(" ".join(words))
    training = [example(f"t{i}", text) for i, text in enumerate(train_texts)]
    evaluation = [example(f"e{i}", text) for i, text in enumerate(edited + make_texts(generator, 60))]
    report = find_leakage(training, {"holdout": evaluation})
    sets = {item.example_id: make_shingles(normalise(item.input_text)) for item in training + evaluation}
    expected = {
        item.example_id
        for item in evaluation
        if any(jaccard(sets[item.example_id], sets[t.example_id]) >= 0.85 for t in training)
    }
    assert {pair.example_id for pair in report.pairs} == expected
    assert len(expected) > 20


def test_at_most_three_pairs_for_an_example_and_exact_ones_alone() -> None:
    training = [example("n1", NEAR), *(example(f"x{i}", LONG) for i in range(5)), example("n2", NEAR)]
    report = find_leakage(training, {"ood": [example("o", LONG), example("p", f"{LONG}!")]})
    # "p" differs from LONG in punctuation: similar by 1, but not equal.
    assert [(pair.train_id, pair.example_id, pair.kind, pair.similarity) for pair in report.pairs] == [
        *((f"x{i}", "o", "exact", 1.0) for i in range(3)),
        *((f"x{i}", "p", "near", 1.0) for i in range(3)),
    ]


def test_training_streams_by(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches change nothing, and no training example is held."""
    monkeypatch.setattr("training.engine.data.leakage.report.BATCH_TEXTS", 2)
    training = [example(f"t{i}", NEAR if i % 3 else LONG) for i in range(9)]

    def stream() -> Iterator[Example]:
        yield from training

    report = find_leakage(stream(), {"ood": [example("o", LONG)]})
    assert [pair.train_id for pair in report.pairs] == ["t0", "t3", "t6"]
    overlap = report.matrix.between("train", "ood")
    assert (overlap.num_exact, overlap.num_near, overlap.num_left, overlap.num_right) == (3, 6, 9, 1)
    assert [pair.left_id for pair in overlap.pairs] == ["t0", "t3", "t6", "t1", "t2", "t4", "t5", "t7", "t8"]


def write(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def row(name: str, text: str) -> dict[str, Any]:
    return {"id": name, "messages": [{"role": "user", "content": text}]}


def test_files_of_a_job(tmp_path: Path) -> None:
    write(tmp_path / "train" / "x@1.jsonl", row("1", "a b c d"))
    write(tmp_path / "suite" / "ood.jsonl", row("1", "a b c d"))
    write(tmp_path / "suite" / "canary.jsonl", row("7", "A b c d"))
    result = check_leakage(training_data=tmp_path / "train", suite=tmp_path / "suite")
    assert result["status"] == "checked"
    assert result["pairs"] == [
        {"train_id": "1", "role": "ood", "example_id": "1", "kind": "exact", "similarity": 1.0},
        {"train_id": "1", "role": "canary", "example_id": "7", "kind": "exact", "similarity": 1.0},
    ]
    sets = [(item["left"], item["right"], item["num_exact"]) for item in result["matrix"]]
    assert sets == [("train", "ood", 1), ("train", "canary", 1), ("ood", "canary", 1)]
    assert json.loads(json.dumps(result)) == result


def test_without_training_data_nothing_is_known_of_leaks(tmp_path: Path) -> None:
    write(tmp_path / "suite" / "ood.jsonl", row("1", "a b c d"))
    write(tmp_path / "suite" / "holdout.jsonl", row("2", "a b c d"))
    result = check_leakage(training_data=None, suite=tmp_path / "suite")
    assert (result["status"], result["pairs"]) == ("unknown", [])
    # The evaluation sets are compared all the same.
    assert [(item["left"], item["right"], item["num_exact"]) for item in result["matrix"]] == [
        ("holdout", "ood", 1)
    ]


def test_no_training_examples_are_known_to_leak_nothing() -> None:
    report = find_leakage([], {"ood": [example("o", LONG)]}).to_json()
    assert (report["status"], report["pairs"]) == ("checked", [])


def test_unreadable_training_data_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "suite" / "ood.jsonl", row("1", "a b c d"))
    (tmp_path / "train.jsonl").write_text("{\n")
    with pytest.raises(DataInvalid):
        check_leakage(training_data=tmp_path / "train.jsonl", suite=tmp_path / "suite")
