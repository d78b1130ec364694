# ruff: noqa: RUF001 (full-width marks are what is tested)
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.engine.data.cleaning.sensitive.screening import mask_example, mask_text, screen_example
from training.engine.data.cleaning.sensitive.settings import ScreenSettings
from training.engine.data.examples import ChatMessage, Example


def make(user: str, answer: str, system: str = "", **fields: object) -> Example:
    messages = [ChatMessage("user", user), ChatMessage("assistant", answer)]
    if system:
        messages.insert(0, ChatMessage("system", system))
    return Example(example_id="e1", messages=tuple(messages), fields=fields)


def contents(example: Example | None) -> list[str]:
    assert example is not None
    return [message.content for message in example.messages]


def test_same_value_same_placeholder() -> None:
    example = make(
        "请打139-1234-5678或13612345678，邮箱A@firm.cn", '{"tel": "13912345678", "mail": "a@firm.cn"}'
    )
    outcome = screen_example(example, ScreenSettings()).outcome
    assert contents(outcome.example) == [
        "请打[PHONE_1]或[PHONE_2]，邮箱[EMAIL_1]",
        '{"tel": "[PHONE_1]", "mail": "[EMAIL_1]"}',
    ]
    assert outcome.reasons == ("phone-redacted", "email-redacted")
    assert "39-1234" not in outcome.detail and "13…" in outcome.detail


def test_a_value_is_found_again_where_no_word_names_it() -> None:
    example = make("我的护照号是E12345678", '{"document": "E12345678", "other": "E12345679"}')
    outcome = screen_example(example, ScreenSettings()).outcome
    assert contents(outcome.example)[1] == '{"document": "[PASSPORT_1]", "other": "E12345679"}'


def test_the_key_names_the_value() -> None:
    example = make("hi", '{"password": "hunter2", "passport": "E12345678"}')
    outcome = screen_example(example, ScreenSettings()).outcome
    assert contents(outcome.example)[1] == '{"password": "[PASSWORD_1]", "passport": "[PASSPORT_1]"}'


def test_numbers_in_json() -> None:
    example = make("电话13912345678", '{"phone": 13912345678}')
    flagged = screen_example(example, ScreenSettings()).outcome
    assert contents(flagged.example) == ["电话[PHONE_1]", '{"phone": 13912345678}']
    assert flagged.reasons == ("phone-redacted", "phone-in-json-number")
    redacted = screen_example(example, ScreenSettings(redact_json_numbers=True)).outcome
    assert contents(redacted.example)[1] == '{"phone": "[PHONE_1]"}'


def test_actions_by_kind() -> None:
    example = make("13912345678 a@firm.cn", "ok")
    flagged = screen_example(example, ScreenSettings(action="flag")).outcome
    assert flagged.example is example and flagged.reasons == ("phone-flagged", "email-flagged")
    dropped = screen_example(example, ScreenSettings(actions={"email": "drop"})).outcome
    assert dropped.example is None and dropped.reasons == ("email-dropped",)
    mixed = screen_example(example, ScreenSettings(actions={"email": "flag"})).outcome
    assert contents(mixed.example)[0] == "[PHONE_1] a@firm.cn"
    assert mixed.reasons == ("phone-redacted", "email-flagged")


def test_the_system_prompt_stays_as_it_is_served() -> None:
    example = make("hi", "ok", system="Support: help@firm.cn")
    outcome = screen_example(example, ScreenSettings()).outcome
    assert outcome.example is example and outcome.reasons == ("email-in-system-prompt",)


def test_other_keys_are_flagged_only() -> None:
    example = make("hi", "ok", group="a@firm.cn", tags={"t": "x"}, origin={"file": "b@firm.cn.csv"})
    outcome = screen_example(example, ScreenSettings()).outcome
    assert outcome.example is example and outcome.reasons == ("email-in-fields",)
    assert outcome.detail == "email a@… (9 characters)"
    assert screen_example(example, ScreenSettings(screen_fields=False)).outcome.reasons == ()


def test_reserved_values() -> None:
    example = make("user@example.com", "AKIAIOSFODNN7EXAMPLE")
    screening = screen_example(example, ScreenSettings())
    assert (screening.num_reserved, screening.found, screening.outcome.reasons) == (2, (), ())
    strict = screen_example(example, ScreenSettings(ignore_reserved=False)).outcome
    assert contents(strict.example) == ["[EMAIL_1]", "[SECRET_1]"]


def test_numbering_goes_on_after_what_stands_there() -> None:
    example = make("[PHONE_3] and 13912345678", "ok")
    assert contents(screen_example(example, ScreenSettings()).outcome.example)[0] == "[PHONE_3] and [PHONE_4]"


def test_literals_of_a_second_pass() -> None:
    example = make("张伟住在北京，电话13912345678", '{"name": "张伟"}')
    outcome = screen_example(
        example, ScreenSettings(), {0: {"张伟": "person-name", "李雷": "person-name"}}
    ).outcome
    assert contents(outcome.example) == ["[NAME_1]住在北京，电话[PHONE_1]", '{"name": "[NAME_1]"}']


def test_masks_for_reports() -> None:
    settings = ScreenSettings(action="drop")
    masked = mask_example(make("13912345678", "ok", group="a@firm.cn"), settings)
    assert contents(masked)[0] == "[PHONE_1]" and masked.fields == {"group": "[EMAIL]"}
    assert mask_text("call 13912345678, user@example.com", settings) == "call [PHONE], user@example.com"


PIECES = st.sampled_from(
    [
        "13912345678",
        "139-1234-5678",
        " ",
        "，",
        "a@firm.com",
        "password: hunter2",
        "360426199101010071",
        '"',
        "\\",
        "{",
    ]
)


@settings(max_examples=100, deadline=None)
@given(st.lists(PIECES, max_size=8).map("".join), st.lists(PIECES, max_size=8).map("".join), st.booleans())
def test_twice_is_once_and_nothing_is_left(user: str, value: str, numbers: bool) -> None:
    answer = json.dumps({"v": value, "n": 13912345678}, ensure_ascii=False)
    screen = ScreenSettings(redact_json_numbers=numbers)
    once = screen_example(make(user, answer), screen).outcome.example
    assert once is not None
    json.loads(once.answer or "")
    again = screen_example(once, screen)
    assert again.outcome.example == once
    assert all(item.span.kind == "phone" and not numbers for item in again.found)


def test_values_without_a_gap_between_them_are_all_redacted() -> None:
    glued = "a@firm.com" * 4
    screened = screen_example(make("", json.dumps({"v": glued})), ScreenSettings()).outcome.example
    assert screened is not None
    assert "firm" not in (screened.answer or "")


@pytest.mark.parametrize(
    "text", ["普通的一句话。", "A plain sentence, 42 words, 3.14.", "", '{"urgency":"high"}']
)
def test_clean_examples_stay(text: str) -> None:
    example = make(text or "x", text)
    assert screen_example(example, ScreenSettings()).outcome.example is example
