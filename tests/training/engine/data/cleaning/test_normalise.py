# ruff: noqa: RUF001 (full-width characters are what is tested)
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.engine.data.cleaning.steps import clean, clean_one, make_example
from training.engine.data.cleaning import normalise
from training.engine.data.cleaning.json_answers import is_json_container
from training.engine.data.cleaning.normalise import KIND

PIECES = st.lists(
    st.one_of(
        st.sampled_from(list("你好世，。！（）,.!?:;() \n\t ab1２Ａ　￥¥元万'\"“”`{}[]|=_*-/カ가％．/")),
        st.sampled_from(
            (
                *(
                    "2024年3月5日",
                    "2024/3/5",
                    "March 5, 2024",
                    "03/04/2024",
                    "5 ",
                    "至7日",
                    "1,234",
                    "10KG",
                    "USD",
                ),
                *(
                    "https://a.b/c",
                    "a@b.com",
                    "```",
                    '{"a":"b,c"}',
                    "1.2万元",
                    "http：//",
                    "www.",
                    "SELECT ",
                    " FROM ",
                ),
            )
        ),
    ),
    max_size=12,
).map("".join)
PARAMETERS: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {},
        {"join_cjk": True, "day_first": True, "yuan": "word", "expand_scales": True, "dates": "both"},
        {"yuan": "sign", "amounts": "both", "units": "both", "quoted_values": "change"},
        {"width": "off", "punctuation": "answer", "white_space": "input", "quoted_values": "keep"},
    ]
)


def answer_of(text: str, **parameters: Any) -> str | None:
    outcome = clean_one(KIND, make_example("q", text), **parameters)
    assert outcome.example is not None
    return outcome.example.answer


def test_every_kind_of_change_has_its_reason() -> None:
    text = "你好,ＡＢＣ  于2024年3月5日付¥1,234,重10KG"
    outcome = clean_one(KIND, make_example("q", text))
    assert outcome.example is not None
    assert outcome.example.answer == "你好，ABC 于2024-03-05付¥1234，重10 kg"
    assert set(outcome.reasons) == {"width", "punctuation", "white-space", "date", "amount", "unit"}


def test_inputs_keep_dates_amounts_and_units_as_the_deployed_model_sees_them() -> None:
    outcome = clean_one(KIND, make_example("２ 于2024年3月5日付¥1,234,重10KG", "ok", system="系统,  ２"))
    assert outcome.example is not None
    assert [message.content for message in outcome.example.messages] == [
        "系统,  ２",
        "2 于2024年3月5日付¥1,234，重10KG",
        "ok",
    ]


def test_doubtful_things_are_flagged_with_their_words() -> None:
    example = make_example("q", "due 03/04/2024 or 2023年2月29日")
    outcome = clean_one(KIND, example)
    assert outcome.example == example
    assert set(outcome.reasons) == {"ambiguous-date", "invalid-date"}
    assert outcome.detail == "2023年2月29日, 03/04/2024"
    assert answer_of("due 03/04/2024", day_first=True) == "due 2024-04-03"


def test_code_addresses_and_json_in_prose_stay() -> None:
    text = '见`a,好`、https://x.cn/a,b 和{"日期": "2024/3/5", "n": 1.10}。'
    assert answer_of(text) == text


def test_only_values_of_json_answers_are_treated() -> None:
    text = '{ "日期,Ａ": "2024年3月5日", "note": "你好,  世界", "n": 1.10, "list": ["10KG", "a"] }'
    assert answer_of(text) == (
        '{ "日期,Ａ": "2024-03-05", "note": "你好， 世界", "n": 1.10, "list": ["10 kg", "a"] }'
    ).replace("， ", "，")


@pytest.mark.parametrize("part", ["width", "punctuation", "white_space", "dates", "amounts", "units"])
def test_parts_can_be_switched_off(part: str) -> None:
    text = {
        "width": "ＡＢＣ",
        "punctuation": "你好,世界",
        "white_space": "a  b",
        "dates": "2024/3/5",
        "amounts": "¥ 1,234",
        "units": "10KG",
    }[part]
    assert answer_of(text) != text
    assert answer_of(text, **{part: "off"}) == text
    assert answer_of(text, **{part: "input"}) == text


def test_extraction_answers_go_on_quoting_the_input() -> None:
    quoting = [make_example(f"on 2024/3/{day}", f'{{"when":"2024/3/{day}"}}') for day in range(1, 11)]
    cleaned = clean(KIND, quoting)
    assert cleaned.answers == [example.answer for example in quoting]
    assert cleaned.facts == {
        "num_values_to_change": 10,
        "num_of_these_quoted_from_input": 10,
        "keeps_quoted_values": {"date": True, "amount": True, "unit": True},
        "num_quotes_lost": 0,
    }
    # Where answers have dates of their own form, copies are the exceptions that must follow it.
    mixed = [*quoting[:5], *(make_example("tomorrow", '{"when":"2024/3/9"}') for _ in range(5))]
    cleaned = clean(KIND, mixed)
    assert cleaned.answers[0] == '{"when":"2024-03-01"}'
    assert cleaned.facts["num_quotes_lost"] == 5
    assert clean(KIND, mixed, quoted_values="keep").answers[:5] == [example.answer for example in mixed[:5]]


@pytest.mark.parametrize(
    ("own", "copied", "written"),
    [
        ("2024-03-09", "2024/3/1", "2024-03-01"),
        ("1280.50元", "12,000 元", "12000元"),
        ("2.4 kg", "10KG", "10 kg"),
    ],
)
def test_a_copy_among_values_of_an_own_form_follows_that_form(own: str, copied: str, written: str) -> None:
    examples = [make_example("tomorrow", json.dumps({"value": own}, ensure_ascii=False)) for _ in range(9)]
    examples.append(make_example(f"it says {copied}", json.dumps({"value": copied}, ensure_ascii=False)))
    cleaned = clean(KIND, examples)
    assert json.loads(cleaned.answers[-1] or "") == {"value": written}


def test_of_one_answer_only_so_many_values_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(normalise, "_MAX_LOOKED_FOR", 2)
    outcome = clean_one(
        KIND, make_example("2024/3/1 2024/3/2 2024/3/3", '["2024/3/1","2024/3/2","2024/3/3"]')
    )
    assert outcome.example is not None
    assert outcome.example.answer == '["2024/3/1","2024/3/2","2024-03-03"]'


def test_one_kind_may_be_quoted_and_another_not() -> None:
    examples = [
        make_example(f"{day} March 2024, 1,{day}00 元", f'{{"when":"2024-03-{day}","sum":"1,{day}00 元"}}')
        for day in range(10, 20)
    ]
    cleaned = clean(KIND, examples)
    assert cleaned.answers == [example.answer for example in examples]
    assert cleaned.facts["keeps_quoted_values"] == {"date": False, "amount": True, "unit": True}


@pytest.mark.parametrize(
    ("user", "value", "expected"),
    [
        # Widths and marks change in the input too, and quotes change with it.
        ("请去全聚德(王府井店),谢谢", "全聚德(王府井店)", "全聚德（王府井店）"),
        # Alone the name has more Latin words than Chinese; in its sentence it does not.
        ("请帮我找一下餐馆 A B C go(店)的电话", "A B C go(店)", "A B C go（店）"),
        ("on 2024/3/5", "2024/3/5", "2024/3/5"),
    ],
)
def test_quotes_follow_the_input(user: str, value: str, expected: str) -> None:
    outcome = clean_one(KIND, make_example(user, json.dumps({"name": value}, ensure_ascii=False)))
    assert outcome.example is not None
    assert json.loads(outcome.example.answer or "")["name"] == expected
    assert expected in outcome.example.input_text


@settings(max_examples=300, deadline=None)
@given(PIECES, PIECES, PARAMETERS)
def test_prose_is_settled_after_one_run(user: str, answer: str, parameters: dict[str, Any]) -> None:
    once = clean_one(KIND, make_example(user, answer), **parameters)
    assert once.example is not None
    assert "unsettled" not in once.reasons
    again = clean_one(KIND, once.example, **parameters)
    assert again.example == once.example


@settings(max_examples=300, deadline=None)
@given(PIECES, PIECES, PIECES, st.booleans(), PARAMETERS)
def test_json_stays_json_with_its_keys_and_numbers(
    user: str, key: str, value: str, ascii_only: bool, parameters: dict[str, Any]
) -> None:
    answer = json.dumps({key: [value, 1.5, None], "quote": user}, ensure_ascii=ascii_only)
    once = clean_one(KIND, make_example(user, answer), **parameters)
    assert once.example is not None
    treated = once.example.answer or ""
    assert is_json_container(treated)
    parsed = json.loads(treated)
    assert set(parsed) == {key, "quote"}
    if key != "quote":
        assert parsed[key][1:] == [1.5, None]
    again = clean_one(KIND, once.example, **parameters)
    assert again.example == once.example
