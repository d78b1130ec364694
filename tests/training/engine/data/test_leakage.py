# ruff: noqa: RUF001 (full-width characters are what is tested)
import json
import random
from pathlib import Path

import pytest

from training.engine.data.examples import ChatMessage, Example
from training.engine.data.leakage import check_leakage, find_leakage
from training.engine.data.shingles import jaccard, make_shingles, normalise

WORDS = [f"word{i}" for i in range(30)]


def example(name: str, text: str) -> Example:
    return Example(example_id=name, messages=(ChatMessage("system", "same"), ChatMessage("user", text)))


def make_texts(generator: random.Random, count: int) -> list[str]:
    return [" ".join(generator.choices(WORDS, k=generator.randint(1, 30))) for _ in range(count)]


def test_planted_pairs_are_found() -> None:
    long_text = " ".join(f"w{i}" for i in range(40))
    # 38 shingles; one changed last word leaves 37 shared of 39: 0.949.
    near_text = long_text.replace("w39", "other")
    chinese = "您好，我上周在网上买的耳机收到以后左边没有声音，请帮我换一个新的，谢谢"
    training = [
        example("t1", long_text),
        example("t2", "Where  is MY order？"),
        example("t3", chinese),
        example("t4", ""),
    ]
    report = find_leakage(
        training,
        {
            "holdout": [example("h1", near_text), example("h2", "something else entirely here")],
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


def test_files_of_a_job(tmp_path: Path) -> None:
    line = json.dumps({"id": "1", "messages": [{"role": "user", "content": "a b c d"}]})
    (tmp_path / "train").mkdir()
    (tmp_path / "suite").mkdir()
    (tmp_path / "train" / "x@1.jsonl").write_text(line)
    (tmp_path / "suite" / "ood.jsonl").write_text(line)
    assert check_leakage(training_data=tmp_path / "train", suite=tmp_path / "suite") == {
        "status": "checked",
        "pairs": [{"train_id": "1", "role": "ood", "example_id": "1", "kind": "exact", "similarity": 1.0}],
    }
    assert check_leakage(training_data=None, suite=tmp_path / "suite") == {"status": "unknown", "pairs": []}
