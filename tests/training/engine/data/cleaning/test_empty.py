# ruff: noqa: RUF001 (full-width marks are what is tested)
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.engine.data.cleaning.steps import clean_one, make_example
from training.engine.data.cleaning.empty import KIND, is_placeholder, what_is_missing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "empty"),
        (" \n\u3000\u200b", "empty"),
        ("。。。", "punctuation-only"),
        ("...?!", "punctuation-only"),
        ("——", "punctuation-only"),
        ("~~~", "punctuation-only"),
        ("👍👍！", "emoji-only"),
        ("❤️‍🔥", "emoji-only"),
        ("好的", ""),
        ("7", ""),
        ("OK!", ""),
        ("<=", ""),
        ("√", ""),
        ("1️⃣", ""),
    ],
)
def test_what_is_missing(text: str, expected: str) -> None:
    assert what_is_missing(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "N/A",
        "null",
        "None.",
        "TODO",
        "<placeholder>",
        "xxx",
        "XXXX",
        "无",
        "暂无。",
        "（待补充）",
        "同上",
    ],
)
def test_placeholders(text: str) -> None:
    assert is_placeholder(text)
    assert clean_one(KIND, make_example("q", text)).reasons == ("placeholder-answer",)
    assert clean_one(KIND, make_example("q", text), allowed=[text]).reasons == ()
    # As inputs these may well be what somebody said.
    assert clean_one(KIND, make_example(text, "ok")).reasons == ()


@pytest.mark.parametrize(
    "text", ["无法登录", "none of these", "NA", "no", "未知", "xx", "空调坏了", "同上海分公司"]
)
def test_answers_that_only_look_like_placeholders(text: str) -> None:
    assert clean_one(KIND, make_example("好的", text)).reasons == ()


@pytest.mark.parametrize(
    ("user", "answer", "reason"),
    [
        ("", "ok", "empty-input"),
        ("？", "ok", "punctuation-only-input"),
        ("👍", "ok", "emoji-only-input"),
        ("q", " \n", "empty-answer"),
        ("q", "。", "punctuation-only-answer"),
        ("q", "😀", "emoji-only-answer"),
        ("q", "```\n```", "punctuation-only-answer"),
    ],
)
def test_dropped(user: str, answer: str, reason: str) -> None:
    outcome = clean_one(KIND, make_example(user, answer))
    assert (outcome.example, outcome.reasons) == (None, (reason,))


def test_flagged_instead_of_dropped() -> None:
    outcome = clean_one(KIND, make_example("？", "ok"), inputs="flag")
    assert outcome.example is not None
    assert outcome.reasons == ("punctuation-only-input",)
    for answer in ("{}", " [ ]\n"):
        assert clean_one(KIND, make_example("q", answer)).example is not None
        assert clean_one(KIND, make_example("q", answer)).reasons == ("empty-json",)
        assert clean_one(KIND, make_example("q", answer), empty_json="drop").example is None
    outcome = clean_one(KIND, make_example("q", None))
    assert outcome.example is not None
    assert outcome.reasons == ("no-answer",)


@given(st.text(min_size=1).filter(lambda text: any(character.isalnum() for character in text)))
def test_letters_and_digits_are_content(text: str) -> None:
    assert what_is_missing(text) == ""
