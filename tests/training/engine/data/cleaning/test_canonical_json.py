import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.engine.data.cleaning.steps import clean, make_example
from training.engine.data.cleaning import canonical_json
from training.engine.data.cleaning.canonical_json import KIND, take_from_fence

PLAIN = '{"type":"login","urgency":"high"}'


def canonical(*answers: str, **parameters: Any) -> tuple[list[str | None], list[tuple[str, ...]]]:
    cleaned = clean(KIND, [make_example("q", answer) for answer in answers], **parameters)
    return cleaned.answers, cleaned.reasons


@pytest.mark.parametrize(
    ("answer", "expected", "reasons"),
    [
        (PLAIN, PLAIN, ()),
        (f"  {PLAIN}\n", PLAIN, ("json-form",)),
        ('{"type": "login", "urgency": "high"}', PLAIN, ("json-form",)),
        (f"```json\n{PLAIN}\n```", PLAIN, ("fence-removed",)),
        (f"```\n{PLAIN}```", PLAIN, ("fence-removed",)),
        ('{"urgency":"high","type":"login"}', PLAIN, ("field-order",)),
        (
            '```json\n{"urgency": "high", "type":"login"}\n```',
            PLAIN,
            ("fence-removed", "json-form", "field-order"),
        ),
        ('{"type":"\\u767b\\u5f55","urgency":"a\\/b"}', '{"type":"登录","urgency":"a/b"}', ("json-form",)),
        ('{"type":"\\ud800","urgency":"\\n"}', '{"type":"\\ud800","urgency":"\\n"}', ()),
        ('{"urgency":"high"}', '{"urgency":"high"}', ()),
        ('{"extra":1,"urgency":"h","type":"t"}', '{"extra":1,"type":"t","urgency":"h"}', ("field-order",)),
    ],
)
def test_forms(answer: str, expected: str, reasons: tuple[str, ...]) -> None:
    answers, found = canonical(PLAIN, PLAIN, PLAIN, answer)
    assert answers[-1] == expected
    assert found[-1] == reasons
    expected.encode()


def test_numbers_keep_their_literals() -> None:
    digits = "9" * 5000
    answers, _ = canonical(f'{{"a": 1.10, "b": [-0, 1E5], "c": {digits}, "d": [true, false, null]}}')
    assert answers == [f'{{"a":1.10,"b":[-0,1E5],"c":{digits},"d":[true,false,null]}}']


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ('{"a":1,"a":2}', "duplicate-key"),
        ('{"x":[{"a":1,"a":1}]}', "duplicate-key"),
        ('{"a":NaN}', "not-a-number"),
        ("[" * 300 + "]" * 300, "too-deep"),
        ("[" * 100_000, "too-deep"),
    ],
)
def test_faulty_json_is_dropped_or_flagged(answer: str, reason: str) -> None:
    answers, reasons = canonical(PLAIN, answer)
    assert (answers[1], reasons[1]) == (None, (reason,))
    answers, reasons = canonical(PLAIN, answer, faulty_json="flag")
    assert (answers[1], reasons[1]) == (answer, (reason,))


def test_prose_among_json_is_flagged_or_dropped() -> None:
    most = [PLAIN] * 9
    for prose in (
        "I cannot tell.",
        '{"type":"login"',
        "42",
        '"login"',
        f"Here: {PLAIN}",
        f"```\n{PLAIN}\n```\nok",
    ):
        answers, reasons = canonical(*most, prose)
        assert (answers[-1], reasons[-1]) == (prose, ("not-json",))
        assert canonical(*most, prose, not_json="drop")[0][-1] is None


def test_datasets_of_prose_are_left_alone() -> None:
    answers, reasons = canonical("prose", "prose", "[1, 2]", '{"a":1,"a":2}')
    assert answers == ["prose", "prose", "[1, 2]", '{"a":1,"a":2}']
    assert reasons == [(), (), (), ()]
    assert canonical("prose", "[1, 2]", min_json_fraction=0.5)[0] == ["prose", "[1,2]"]


def test_general_examples_and_examples_without_answer_are_left_alone() -> None:
    general = make_example("q", "a joke: [1, 2]", is_general=True)
    cleaned = clean(KIND, [make_example("q", PLAIN), general, make_example("q", None)])
    assert cleaned.reasons == [(), (), ()]
    assert cleaned.facts["json_fraction"] == 1.0


def test_given_order_wins() -> None:
    answers, _ = canonical(PLAIN, PLAIN, field_order=["urgency", "type"])
    assert answers == ['{"urgency":"high","type":"login"}'] * 2


def test_nested_orders_are_learnt_and_optional_keys_find_their_place() -> None:
    full, part = '{"x":[{"a":1,"b":2,"c":3}]}', '{"x":[{"c":3,"a":1}]}'
    answers, reasons = canonical(full, full, full, part)
    assert answers[-1] == '{"x":[{"a":1,"c":3}]}'
    assert reasons[-1] == ("field-order",)


def test_an_order_that_follows_the_input_is_left() -> None:
    # Slots in the order in which they are spoken: no order has 80 %.
    spoken = [("a then b", '{"x":"a","y":"b"}'), ("b then a", '{"y":"b","x":"a"}')]
    examples = [make_example(*spoken[0])] * 6 + [make_example(*spoken[1])] * 4
    cleaned = clean(KIND, examples)
    assert set(cleaned.reasons) == {()}
    assert cleaned.facts["field_orders"]["$"] == {
        "keys": ["x", "y"],
        "agreement": 0.6,
        "quoted_from_input": 1.0,
        "is_applied": False,
    }
    # The same answers to inputs that they do not quote have no such reason to differ.
    cleaned = clean(KIND, [make_example("q", example.answer) for example in examples])
    assert set(cleaned.answers) == {'{"x":"a","y":"b"}'}


def test_keys_that_are_data_are_not_learnt() -> None:
    answers = [f'{{"id{number}":1,"a":2}}' for number in range(2001)]
    cleaned = clean(KIND, [make_example("q", answer) for answer in answers])
    assert cleaned.answers == answers
    assert cleaned.facts["field_orders"]["$"]["agreement"] is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("```json\n[1]\n```", "[1]"),
        ("```JSON\r\n[1]\r\n```", "[1]"),
        ("``` [1] ```", "[1]"),
        ('```\n{"code":"```x```"}\n```', '{"code":"```x```"}'),
        ("```\n[1]\n```\nand\n```\nx\n```", "```\n[1]\n```\nand\n```\nx\n```"),
        ("``````", "``````"),
        ("```py\nprint()\n```", "```py\nprint()\n```"),
    ],
)
def test_take_from_fence(text: str, expected: str) -> None:
    assert take_from_fence(text) == expected


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=10,
)


@given(st.lists(VALUES.filter(lambda value: isinstance(value, dict | list)), min_size=1, max_size=4))
def test_values_stay_and_a_second_run_changes_nothing(values: list[Any]) -> None:
    answers, _ = canonical(*(json.dumps(value, indent=1) for value in values))
    assert [json.loads(answer or "") for answer in answers] == values
    again, reasons = canonical(*(answer or "" for answer in answers))
    assert again == answers
    assert set(reasons) == {()}


def test_of_one_answer_only_so_many_objects_are_learnt_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(canonical_json, "MAX_OBJECTS_PER_ANSWER", 2)
    usual, other = '{"a":1,"b":2}', '{"b":1,"a":2}'
    answers, _ = canonical(f"[{usual},{usual},{other},{other},{other}]")
    ordered = '{"a":2,"b":1}'
    assert answers == [f"[{usual},{usual},{ordered},{ordered},{ordered}]"]
