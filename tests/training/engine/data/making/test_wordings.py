import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.engine.data.making.template_set import Piece, Wording
from training.engine.data.making.wordings import count_phrase, read_wording
from training.engine.errors import Fault


def read(
    text: str,
    *,
    labels: dict[str, str] | None = None,
    keep: list[str] | None = None,
    label: str | None = None,
) -> tuple[Wording, list[str]]:
    faults: list[Fault] = []
    wording = read_wording(text, labels=labels or {}, keep=keep, label=label, where="here", faults=faults)
    return wording, [fault.code for fault in faults]


def test_slots_and_braces() -> None:
    wording, faults = read("{Place} shows {{x}} in {place_2}.")
    assert faults == []
    assert wording.pieces == (
        Piece(slot="place", is_capitalised=True),
        Piece(text=" shows {x} in "),
        Piece(slot="place_2"),
        Piece(text="."),
    )
    assert wording.slots == ("place", "place_2")


@pytest.mark.parametrize("text", ["a { b", "a } b", "{1a}", "{a b}", "{}"])
def test_stray_braces(text: str) -> None:
    assert set(read(text)[1]) == {"stray-brace"}


def test_a_labelled_text_keeps_its_words_but_not_its_punctuation() -> None:
    wording, _ = read("I cannot log in to {place}, help!", labels={"problem": '"login"'})
    assert wording.kept_texts == ("I cannot log in to", "help")
    assert "".join(piece.text for piece in wording.pieces) == "I cannot log in to , help!"
    assert read("I cannot log in.")[0].kept_texts == ()


def test_keep_names_the_words_that_bear_the_label() -> None:
    wording, faults = read(
        "Log in, then log in again to blog.", labels={"a": "1"}, keep=["log in again", "lo"]
    )
    assert (wording.kept_texts, faults) == (("log in again",), ["keep-not-in-text"])
    assert read("No word.", labels={"a": "1"}, keep=[])[0].kept_texts == ()
    assert read("在{place}无法登录。", labels={"a": "1"}, keep=["登录"])[0].kept_texts == ("登录",)


def test_a_text_that_is_its_label() -> None:
    wording, faults = read(' 12,000 "EUR"', label="amount")
    assert (wording.labels, wording.kept_texts, wording.is_label_text, faults) == (
        {"amount": '"12,000 \\"EUR\\""'}, ('12,000 "EUR"',), True, [],
    )  # fmt: skip
    assert read("{x} EUR", label="amount")[1] == ["slot-in-label-text"]
    assert read("5 EUR", labels={"amount": "5"}, label="amount")[1] == ["label-set-twice"]


@pytest.mark.parametrize(
    ("text", "phrase", "num"),
    [
        ("250 EUR and 25 EUR", "25", 1),
        ("blog login log", "log", 1),
        ("请登录。登录失败", "登录", 2),
        ("Löschen", "sch", 0),
        ("C++ or C", "C++", 1),
        ("urgent", "Urgent", 0),
        ("a.b a.b", "a.b", 2),
    ],
)
def test_phrases_that_stand_by_themselves(text: str, phrase: str, num: int) -> None:
    assert count_phrase(text, phrase) == num


@given(st.text("ab {}.登", max_size=20), st.booleans())
def test_pieces_are_the_text(text: str, is_labelled: bool) -> None:
    wording, faults = read(text, labels={"l": "1"} if is_labelled else None)
    if not faults:
        rebuilt = "".join(
            "{" + piece.slot + "}" if piece.slot else piece.text.replace("{", "{{").replace("}", "}}")
            for piece in wording.pieces
        )
        assert rebuilt == text
