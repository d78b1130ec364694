# ruff: noqa: RUF001 (odd characters are what is tested)
import json

import pytest
from hypothesis import example as case
from hypothesis import given
from hypothesis import strategies as st

from tests.training.engine.data.cleaning.steps import clean_one, make_example
from training.engine.data.cleaning.json_answers import is_json_container
from training.engine.data.cleaning.repair_text import KIND, repair

ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"


@pytest.mark.parametrize(
    ("broken", "mended", "reason"),
    [
        # Made by hand: the right text encoded in UTF-8 and decoded as Windows-1252, Latin-1 or GBK.
        ("cafÃ©", "café", "mojibake"),
        ("donâ€™t", "don’t", "mojibake"),
        ("ä½\u00a0å¥½", "你好", "mojibake"),
        ("你好\nvoilÃ\u00a0 tout", "你好\nvoilà tout", "mojibake"),
        ("浣犲ソ锛屼笘鐣屻€", "浣犲ソ锛屼笘鐣屻€", ""),
        ("浣犲ソ", "你好", "mojibake"),
        ("don\x92t", "don’t", "mojibake"),
        ("你好 don\x92t", "你好 don’t", "control-character"),
        ("a\x00b\x07c", "abc", "control-character"),
        ("\x1b[31mred\x1b[0m", "red", "control-character"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd", "line-break"),
        ("\ufeff你好", "你好", "byte-order-mark"),
        ("你\u200b好\u2060", "你好", "zero-width"),
        ("soft\u00adware", "software", "zero-width"),
        ("abc\u202edef\u200e", "abcdef", "bidi-control"),
        ("hi\U000e0068\U000e0069", "hi", "hidden-tag"),
        ("10\u00a0000\u202fEUR", "10 000 EUR", "no-break-space"),
        ("\ud83d\ude00", "😀", "surrogate"),
        ("bad \ud800", "bad \ufffd", "lost-characters"),
        ("锟斤拷", "锟斤拷", "lost-characters"),
        ("lost \ufffd", "lost \ufffd", "lost-characters"),
    ],
)
def test_repair(broken: str, mended: str, reason: str) -> None:
    text, reasons = repair(broken)
    assert text == mended
    assert reason in reasons if reason else not reasons


@pytest.mark.parametrize(
    "fine",
    [
        "Naïve café, Ñandú, SÃO PAULO – “quoted” … £5",
        "联通，重庆；好的。ｆｕｌｌ　ｗｉｄｔｈ ①㈱",
        "👩‍👩‍👧 family, 🏳️‍🌈 flag, ❤️‍🔥",
        ENGLAND,
        "می‌خواهم",
        "क्‍ष",
        "שלום \u200fabc\u200e",
        'it\'s "straight" & ﬁne &amp; <b>',
    ],
)
def test_what_is_fine_stays(fine: str) -> None:
    assert repair(fine) == (fine, ())


def test_mojibake_may_be_switched_off() -> None:
    assert repair("cafÃ©\u200b", mojibake=False) == ("cafÃ©", ("zero-width",))


@given(
    st.text(
        st.one_of(
            st.characters(),
            st.sampled_from(
                "\u200b\u200d\ufeff\u00ad\u202e\u00a0\r\n\x1b[m\x92Ã©â€™浣犲ソ😀\U0001f3f4\U000e0067"
            ),
        ),
        max_size=20,
    )
)
@case("Ã\u200b©")
@case("\x1b\x1b[m[m")
def test_repair_is_idempotent_and_encodable(text: str) -> None:
    once, _ = repair(text)
    assert repair(once)[0] == once
    once.encode()


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126) | st.sampled_from("\t\n")))
def test_ascii_stays(text: str) -> None:
    assert repair(text) == (text, ())


def test_step_reports_what_it_mended() -> None:
    outcome = clean_one(KIND, make_example("你\u200b好", "cafÃ©", system="\ufeffsystem"))
    assert outcome.example is not None
    assert [message.content for message in outcome.example.messages] == ["\ufeffsystem", "你好", "café"]
    assert outcome.reasons == ("mojibake", "zero-width")
    flagged = clean_one(KIND, make_example("锟斤拷"))
    assert (flagged.reasons, flagged.example) == (("lost-characters",), make_example("锟斤拷"))
    assert clean_one(KIND, make_example("fine")).reasons == ()


def test_json_answers_stay_json() -> None:
    answer = '\ufeff{"text":"a\u2028b\\u200b","n":1.10}'
    outcome = clean_one(KIND, make_example("q", answer))
    assert outcome.example is not None
    # The line break comes out escaped, the number keeps its literal.
    assert outcome.example.answer == '{"text":"a\\nb","n":1.10}'
    assert outcome.reasons == ("line-break", "byte-order-mark", "zero-width")


@given(st.text(st.sampled_from('a"\\\u2028\r\n\u200b\u00a0\x92Ã©{}'), max_size=12), st.booleans())
def test_json_stays_json_whatever_is_in_it(text: str, ascii_only: bool) -> None:
    outcome = clean_one(KIND, make_example("q", json.dumps({"k": text}, ensure_ascii=ascii_only)))
    assert outcome.example is not None
    answer = outcome.example.answer or ""
    assert is_json_container(answer)
    assert json.loads(answer) == {"k": repair(text)[0]}
