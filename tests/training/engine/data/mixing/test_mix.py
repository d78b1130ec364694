# ruff: noqa: RUF001 (full-width characters are what is tested)
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from training.engine.data.example_files import iterate_examples, write_examples
from training.engine.data.examples import ChatMessage, Example
from training.engine.data.mixing import Mix, mix_examples, mix_files
from training.engine.errors import ConfigInvalid


def example(name: str, text: str = "a question", answer: str | None = "an answer", **fields: Any) -> Example:
    messages = [ChatMessage("user", text)]
    if answer is not None:
        messages.append(ChatMessage("assistant", answer))
    is_general = fields.get("role") == "general"
    return Example(example_id=name, messages=tuple(messages), is_general=is_general, fields=fields)


TASK = [example(f"t{i}") for i in range(90)]
GENERAL = [example(f"g{i}") for i in range(40)]
UNCHANGED = [example(f"u{i}", f"text {i}", f"text {i}") for i in range(40)]


def ids(mix: Mix) -> list[str]:
    return [item.example_id for item in mix.examples]


def codes(mix: Mix) -> list[str]:
    return [item.code for item in mix.report.shortfalls]


def test_fraction_of_the_whole() -> None:
    mix = mix_examples(TASK, general=GENERAL, general_fraction=0.1, seed=1)
    report = mix.report
    assert (report.num_task, report.num_general, report.num_examples) == (90, 10, 100)
    assert (report.general_fraction, report.shortfalls) == (0.1, ())
    assert len(set(ids(mix))) == 100
    general = [item for item in mix.examples if item.example_id.startswith("g")]
    assert all(item.is_general and item.fields["role"] == "general" for item in general)
    assert mix_examples(TASK, general=GENERAL, general_fraction=0.1, seed=1) == mix
    assert ids(mix_examples(TASK, general=GENERAL, general_fraction=0.1, seed=2)) != ids(mix)


def test_examples_are_shuffled_and_all_there() -> None:
    mix = mix_examples(TASK, seed=1)
    assert mix.examples != tuple(TASK)
    assert sorted(ids(mix)) == sorted(item.example_id for item in TASK)


def test_too_few_general_examples_are_not_repeated() -> None:
    mix = mix_examples(TASK, general=GENERAL, general_fraction=0.5, seed=1)
    assert mix.report.num_general == 40
    assert mix.report.general_fraction == pytest.approx(40 / 130)
    assert codes(mix) == ["general-too-few"]
    assert mix.report.shortfalls[0].message == "90 general examples were wanted, 40 there were"


def test_general_examples_of_the_task_count() -> None:
    task = [*TASK, *(example(f"own{i}", role="general") for i in range(6))]
    mix = mix_examples(task, general=GENERAL, general_fraction=0.1, seed=1)
    assert (mix.report.num_task, mix.report.num_general, mix.report.num_general_drawn) == (90, 10, 4)


def test_unchanged_and_general_examples() -> None:
    # 70 of 100 are the task's own, 20 general, 10 unchanged.
    mix = mix_examples(
        TASK[:70], general=GENERAL, unchanged=UNCHANGED, general_fraction=0.2, unchanged_fraction=0.1, seed=1
    )
    report = mix.report
    assert (report.num_examples, report.num_general_drawn, report.num_unchanged_drawn) == (100, 20, 10)
    assert (report.general_fraction, report.unchanged_fraction) == (0.2, 0.1)


def test_unchanged_examples_of_the_task_count() -> None:
    task = [*TASK, *(example(f"same{i}", f"text  {i}", f"text {i}\n") for i in range(4))]
    mix = mix_examples(task, unchanged=UNCHANGED, unchanged_fraction=0.1, seed=1)
    # 90 others are nine tenths: 10 are wanted, 4 are there.
    assert (mix.report.num_unchanged, mix.report.num_unchanged_drawn) == (10, 6)
    many = mix_examples([*TASK, *UNCHANGED], unchanged=UNCHANGED[:0], unchanged_fraction=0.1, seed=1)
    assert (many.report.num_unchanged, many.report.num_unchanged_drawn, many.report.shortfalls) == (40, 0, ())


@pytest.mark.parametrize(
    ("text", "answer"), [("价格：１２", "价格：12"), ("Fine,", "Fine."), ("OK", "ok"), ("", "")]
)
def test_corrections_of_width_case_and_marks_are_changes(text: str, answer: str) -> None:
    mix = mix_examples([example("a", text, answer)], seed=1)
    assert mix.report.num_unchanged == 0


def test_pool_of_unchanged_examples() -> None:
    pool = [example("u1", "no answer yet", None), example("u2", "x", "y"), example("u3", "", None)]
    mix = mix_examples(TASK, unchanged=pool, unchanged_fraction=0.1, seed=1)
    drawn = next(item for item in mix.examples if item.example_id == "u1")
    assert (drawn.answer, drawn.fields["reference_source"]) == ("no answer yet", "rule")
    assert codes(mix) == ["unchanged-too-few", "pool-not-unchanged"]
    assert mix.report.shortfalls[0].message == "10 unchanged examples were wanted, 1 there were"
    assert mix.report.shortfalls[1].message.startswith("2 of 3 examples")


def labelled(**counts: int) -> list[Example]:
    return [
        example(f"{label}{i}", answer=json.dumps({"label": label}), origin={"row": i})
        for label, num in counts.items()
        for i in range(num)
    ]


def test_rare_values_are_repeated() -> None:
    mix = mix_examples(labelled(a=90, b=40, c=4), balance_by="answer/label", seed=1)
    # sqrt(90 / 40) = 1.5; sqrt(90 / 4) = 4.7, at most 3.
    assert [(item.value, item.num_before, item.num_after, item.factor) for item in mix.report.values] == [
        ("a", 90, 90, 1.0),
        ("b", 40, 60, 1.5),
        ("c", 4, 12, 3.0),
    ]
    assert (mix.report.num_task, mix.report.num_repeats, mix.report.num_examples) == (134, 28, 162)
    assert len(set(ids(mix))) == 162
    repeats = {item.example_id: item.origin for item in mix.examples if item.example_id.startswith("c0")}
    assert repeats == {
        "c0": {"row": 0},
        "c0-repeat2": {"row": 0, "repeat_of": "c0", "repeat": 2},
        "c0-repeat3": {"row": 0, "repeat_of": "c0", "repeat": 3},
    }


def test_fractions_of_a_factor_are_spread() -> None:
    mix = mix_examples(labelled(a=90, b=40), balance_by="answer/label", seed=1)
    copies = Counter(name.split("-")[0] for name in ids(mix) if name.startswith("b"))
    assert Counter(copies.values()) == {1: 20, 2: 20}


def test_bounds_of_repeats() -> None:
    mix = mix_examples(labelled(a=90, c=4), balance_by="answer/label", max_repeats=1, seed=1)
    assert mix.report.num_repeats == 0
    mix = mix_examples(TASK, balance_by="answer/label", seed=1)
    assert (mix.report.num_repeats, codes(mix)) == (0, ["no-values"])


def test_repeats_count_towards_the_fractions() -> None:
    # 36 + 12 (4 x 3) = 48 are two thirds of 72.
    mix = mix_examples(
        labelled(a=36, c=4), general=GENERAL, general_fraction=1 / 3, balance_by="answer/label", seed=1
    )
    assert (mix.report.num_repeats, mix.report.num_general) == (8, 24)


def test_ids_are_made_different() -> None:
    task = [*labelled(a=4, b=1), example("b0-repeat2", answer="x")]
    mix = mix_examples(
        task,
        general=[example("a0"), example("a0-2")],
        general_fraction=0.25,
        balance_by="answer/label",
        seed=1,
    )
    # 6 of the task, a repeat, and 2 general ones, a quarter of the whole.
    assert len(ids(mix)) == len(set(ids(mix))) == 9
    assert {item.example_id for item in task} < set(ids(mix))
    assert "b0-repeat2-2" in ids(mix)


def test_files(tmp_path: Path) -> None:
    task = labelled(a=20, b=5)
    general = [example(f"g{i}", f"第{i}个问题") for i in range(5)]
    paths = {
        name: write_examples(tmp_path / f"{name}.jsonl", rows).path
        for name, rows in (("task", task), ("general", general), ("unchanged", UNCHANGED))
    }
    settings: dict[str, Any] = {
        "general_fraction": 0.1,
        "unchanged_fraction": 0.1,
        "balance_by": "answer/label",
    }
    written, report = mix_files(**paths, target=tmp_path / "mix.jsonl", seed=3, **settings)
    mix = mix_examples(task, general=general, unchanged=UNCHANGED, seed=3, **settings)
    assert tuple(iterate_examples(written.path)) == mix.examples
    assert report == mix.report
    assert json.loads(json.dumps(report.to_json())) == report.to_json()
    again, _ = mix_files(**paths, target=tmp_path / "again.jsonl", seed=3, **settings)
    assert again.sha256 == written.sha256


def test_nothing_to_mix() -> None:
    mix = mix_examples([], general=GENERAL, general_fraction=0.1, seed=1)
    assert (mix.examples, mix.report.general_fraction) == ((), 0.0)


@pytest.mark.parametrize(
    "arguments",
    [
        {"general_fraction": 1.0},
        {"general_fraction": -0.1},
        {"general_fraction": 0.6, "unchanged_fraction": 0.4},
        {"max_repeats": 0},
    ],
)
def test_values_out_of_range(arguments: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(arguments))):
        mix_examples(TASK, seed=1, **arguments)


def test_unknown_field() -> None:
    with pytest.raises(ConfigInvalid):
        mix_examples(TASK, balance_by="answer/", seed=1)
