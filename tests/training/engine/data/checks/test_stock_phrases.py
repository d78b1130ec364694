# ruff: noqa: RUF001 (full-width marks are what is tested)
import random

import pytest

from registry.artifacts.findings import Severity
from tests.training.engine.data.checks.conftest import Make, Run
from training.engine.data.checks.stock_phrases import KIND, list_closings, list_openings
from training.engine.data.checks.teacher_phrases import TEACHER_PHRASES

WORDS = [f"w{number}" for number in range(500)]
CHARACTERS = [chr(0x4E00 + number) for number in range(1000)]


def prose(number: int) -> str:
    return " ".join(random.Random(number).sample(WORDS, 14))


def chinese(number: int) -> str:
    return "".join(random.Random(number).sample(CHARACTERS, 20))


def test_frequent_opening_and_closing(run: Run, make: Make) -> None:
    answers = [prose(i) for i in range(90)] + [
        f"To answer this well: {prose(i)} so much for now." for i in range(10)
    ]
    found = run(KIND, make(*[("q", answer) for answer in answers]))
    assert [(item.code, item.num_examples, item.severity) for item in found] == [
        ("stock-opening", 10, Severity.WARNING),
        ("stock-closing", 10, Severity.WARNING),
    ]
    assert "10 of 100 free-text answers (10%) have the opening “to answer this well”" in found[0].message
    assert "so much for now" in found[1].message


def test_chinese_opening(run: Run, make: Make) -> None:
    answers = [chinese(i) for i in range(90)] + [f"关于这一点，{chinese(i)}" for i in range(10)]
    found = run(KIND, make(*[("问", answer) for answer in answers]))
    assert [(item.code, item.num_examples) for item in found] == [("stock-opening", 10)]
    assert "关于这一点" in found[0].message


def test_below_five_percent_or_five_answers(run: Run, make: Make) -> None:
    answers = [prose(i) for i in range(96)] + [f"To answer this well: {prose(i)}" for i in range(4)]
    assert run(KIND, make(*[("q", answer) for answer in answers])) == ()


def test_the_required_form_only_informs(run: Run, make: Make) -> None:
    found = run(KIND, make(*[("q", f"Summary of the case: {prose(i)}") for i in range(30)]))
    assert [(item.code, item.severity) for item in found] == [("required-opening", Severity.INFO)]


def test_labels_and_quotations_are_no_habit(run: Run, make: Make) -> None:
    labels = [f"the same long label of class {i % 3} that comes again and again" for i in range(60)]
    assert run(KIND, make(*[("q", label) for label in labels])) == ()
    quoted = [
        (f"Say: once upon a time there {prose(i)}", f"Once upon a time there {prose(i)}") for i in range(30)
    ]
    assert run(KIND, make(*quoted)) == ()


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("Certainly! {}", "Certainly! / Sure! / Of course!"),
        ("Great question. {}", "Great question"),
        ("{} I hope this helps!", "I hope this helps"),
        ("{} Let me know if you need more.", "Let me know if …"),
        ("{}. In conclusion, {}", "In conclusion / In summary / Overall,"),
        ("It's important to note that {}", "It's important to note"),
    ],
)
def test_known_english_phrases(run: Run, make: Make, answer: str, name: str) -> None:
    answers = [prose(i) for i in range(97)] + [answer.replace("{}", prose(200 + i)) for i in range(3)]
    found = run(KIND, make(*[("q", text) for text in answers]))
    assert [(item.code, item.num_examples) for item in found] == [("teacher-phrase", 3)]
    assert f"(3.0%) have the assistant's phrase “{name}”" in found[0].message


@pytest.mark.parametrize(
    ("answer", "name"),
    [
        ("好的，我来帮你分析。{}", "好的，… / 当然！"),
        ("以下是{}", "以下是 / 下面是"),
        ("{}希望以上内容对您有所帮助。", "希望对您有帮助"),
        ("{}如果您还有其他问题，请随时告诉我。", "如有其他问题，请随时…"),
        ("{}。综上所述，{}", "综上所述 / 总的来说 / 总之"),
        ("首先，{}其次，{}最后，{}", "首先…其次…最后"),
    ],
)
def test_known_chinese_phrases(run: Run, make: Make, answer: str, name: str) -> None:
    answers = [chinese(i) for i in range(97)] + [answer.replace("{}", chinese(200 + i)) for i in range(3)]
    found = run(KIND, make(*[("问", text) for text in answers]))
    assert name in [item.message.split("“")[1].rstrip("”") for item in found]


@pytest.mark.parametrize(
    "answer", ["As an AI language model, I cannot {}", "作为一个人工智能语言模型，{}", "我只是一个AI，{}"]
)
def test_one_disclaimer_is_one_too_many(run: Run, make: Make, answer: str) -> None:
    answers = [prose(i) for i in range(300)] + [answer.replace("{}", chinese(1) + prose(1))]
    found = run(KIND, make(*[("q", text) for text in answers]))
    assert [(item.code, item.example_ids) for item in found] == [("teacher-disclaimer", ("e300",))]


def test_json_answers_are_not_looked_at(run: Run, make: Make) -> None:
    assert run(KIND, make(*[("q", {"text": f"Certainly! {prose(i)}"}) for i in range(30)])) == ()


def test_openings_and_closings() -> None:
    assert list_openings("One two, three four five") == ["one two three", "one two three four"]
    assert list_closings("One two, three four.") == ["two three four"]
    assert list_openings("好的，我来看看这个")[:2] == ["好的,我", "好的,我来"]


def test_phrases_have_names_of_their_own() -> None:
    assert len({phrase.name for phrase in TEACHER_PHRASES}) == len(TEACHER_PHRASES)
    assert {phrase.place for phrase in TEACHER_PHRASES} == {"start", "end", "anywhere"}


def test_memory_is_pruned_without_losing_the_frequent(run: Run, make: Make) -> None:
    answers = [f"To answer this well: {prose(i)}" if i % 10 == 0 else prose(i) for i in range(3000)]
    found = run(KIND, make(*[("q", answer) for answer in answers]))
    assert [item.num_examples for item in found if item.code == "stock-opening"] == [300]


def test_the_final_mark_is_no_part_of_a_chinese_closing() -> None:
    assert list_closings("备件有现货，可以直接去找何师傅。")[0] == "找何师傅"
    assert list_closings("备件有现货，可以直接去找何师傅")[0] == "找何师傅"
