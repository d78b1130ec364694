# ruff: noqa: RUF001 (full-width marks are what is tested)
from typing import Any

import pytest

from tests.training.engine.data.cleaning.steps import clean, clean_one, make_example
from training.engine.data.cleaning.stock_answers import KIND


def treat(answer: str, **parameters: Any) -> tuple[str | None, tuple[str, ...]]:
    outcome = clean_one(KIND, make_example("q", answer), **parameters)
    return outcome.example.answer if outcome.example else None, outcome.reasons


REFUSALS = [
    "As an AI language model, I don't have personal opinions.",
    "I'm sorry, but I can't assist with that.",
    "I’m sorry, but I can’t help with that request.",
    "Unfortunately, I am unable to provide legal advice.",
    "I apologize, but as an AI I'm not able to browse the internet.",
    "作为一个人工智能语言模型，我无法提供医疗建议。",
    "很抱歉,我无法回答这个问题。",
    "对不起，作为AI，我不能讨论政治。",
]


@pytest.mark.parametrize("answer", REFUSALS)
def test_refusals_are_dropped(answer: str) -> None:
    assert treat(answer) == (None, ("refused-answer",))


@pytest.mark.parametrize("answer", REFUSALS)
@pytest.mark.parametrize(
    "fields", [{"category": "refusal"}, {"tags": {"kind": "Refusal"}}, {"dimension": "refusal"}]
)
def test_wanted_refusals_stay(answer: str, fields: dict[str, Any]) -> None:
    example = make_example("q", answer, **fields)
    assert clean_one(KIND, example).reasons == ()
    assert clean_one(KIND, example, keep_categories=[]).example is None


@pytest.mark.parametrize(
    "answer",
    [
        "I'm sorry, but I can't attend the meeting on Friday.",
        "I can't access my account.",
        "I cannot help but wonder.",
        "很抱歉，我无法参加周五的会议。",
        "我无法访问网站",
        "抱歉，没有找到相关信息。",
        "Certainly not.",
        "Sure, the capital is Paris.",
        "Sure!",
        "好的，谢谢",
        "Please let me know if Friday suits you.\nBest, Ann",
        "希望对您有帮助。另外，请改密码。",
        "I hope this helps",
        '{"text":"Sure! Here is it."}',
    ],
)
def test_answers_with_content_stay(answer: str) -> None:
    assert treat(answer) == (answer, ())
    assert treat(answer, strip=True) == (answer, ())


def test_a_disclaimer_in_front_of_an_answer_is_an_opening() -> None:
    for answer in (
        "As an AI, I cannot feel, but the capital is Paris.",
        "作为AI助手，我没有情感，但是答案是42。",
    ):
        assert treat(answer, strip=True) == (answer, ("stock-opening",))


@pytest.mark.parametrize(
    ("answer", "content", "reasons"),
    [
        ("Sure! Here is a summary:\n\nIt is short.", "It is short.", ("stock-opening",)),
        ("Of course! It is 5.", "It is 5.", ("stock-opening",)),
        ("好的，以下是总结：内容在此", "内容在此", ("stock-opening",)),
        ("好的,我来帮你分析。问题在于网络", "问题在于网络", ("stock-opening",)),
        ("当然！答案是5。", "答案是5。", ("stock-opening",)),
        ("It is 5. I hope this helps! Let me know if not.", "It is 5.", ("stock-closing",)),
        ("答案是5。如有其他问题，请随时联系我。", "答案是5。", ("stock-closing",)),
        ("Sure! It is 5.\n\nHope this helps!", "It is 5.", ("stock-opening", "stock-closing")),
        ("Here is the thing I meant", "Here is the thing I meant", ("stock-opening",)),
    ],
)
def test_openings_and_closings_are_flagged_or_taken_off(
    answer: str, content: str, reasons: tuple[str, ...]
) -> None:
    assert treat(answer) == (answer, reasons)
    assert treat(answer, strip=True) == (content, reasons)


def test_own_phrases_are_literal() -> None:
    assert treat("Roger that: (a+b)", extra_openings=["Roger that"], strip=True) == (
        "(a+b)",
        ("stock-opening",),
    )
    assert treat("No can do.", extra_refusals=["no can do."]) == (None, ("refused-answer",))
    assert treat("It is 5. Cheers (your bot)!", extra_closings=["Cheers (your bot)"], strip=True) == (
        "It is 5.",
        ("stock-closing",),
    )
    assert treat("aaa is 5", extra_openings=["a+"]) == ("aaa is 5", ())


def test_long_answers_are_no_refusals() -> None:
    answer = "I'm sorry, but I can't assist with that. " + "Still, the law says the following. " * 20
    assert treat(answer)[1] == ()


def test_phrases_are_counted() -> None:
    cleaned = clean(
        KIND, [make_example("q", answer) for answer in ("Sure! A.", "SURE! B.", "C. Hope this helps!")]
    )
    assert cleaned.facts == {"phrases": {"sure": 2, "hope this helps": 1}}
