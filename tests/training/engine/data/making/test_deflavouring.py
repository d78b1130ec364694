# ruff: noqa: RUF001 (full-width characters are what is tested)
import pytest

from training.engine.data.making.deflavouring import (
    FlavourCounter,
    FlavourSettings,
    FlavourStripper,
    StockPhrase,
)

SETTINGS = FlavourSettings(min_fraction=0.3, min_answers=3)


def count(*answers: str, teacher: str = "t") -> FlavourCounter:
    counter = FlavourCounter()
    for answer in answers:
        counter.add(teacher, answer)
    return counter


THANKED = [f"Thank you for reaching out. Case {n} was paid in full." for n in "abc"]


def test_frequent_phrases_are_found_by_teacher() -> None:
    counter = count(*THANKED, *(f"Nothing special in case {n}, it was paid." for n in "defghij"))
    counter.add("other", THANKED[0])
    # 3 of 10 answers of t reach 0.3 and three; the other teacher has one answer.
    phrase = StockPhrase(phrase="thank you for reaching out", place="opening", teacher="t", num_answers=3)
    assert counter.find_stock_phrases(SETTINGS) == (phrase,)
    assert counter.find_stock_phrases(FlavourSettings(min_fraction=0.31, min_answers=3)) == ()
    assert counter.find_stock_phrases(FlavourSettings(min_fraction=0.3, min_answers=4)) == ()


def test_equal_answers_have_no_flavour() -> None:
    assert count(*THANKED[:1] * 9).find_stock_phrases(SETTINGS) == ()


def test_headings_and_single_words_are_form() -> None:
    answers = [f"# The summary\nCase {n} was paid." for n in "abc"]
    answers += [f"Approved. Case {n} was paid." for n in "abc"]
    assert count(*answers).find_stock_phrases(SETTINGS) == ()


def test_frequent_closings_in_chinese() -> None:
    counter = count(*(f"{n}号工单已经处理完毕。感谢您的耐心等待！" for n in "甲乙丙"))
    (phrase,) = counter.find_stock_phrases(SETTINGS)
    assert (phrase.phrase, phrase.place, phrase.num_answers) == ("感谢您的耐心等待", "closing", 3)


def test_stripping_and_its_report() -> None:
    counter = count(*THANKED)
    stripper = FlavourStripper(counter.find_stock_phrases(SETTINGS), settings=SETTINGS)
    answer = "Sure! Thank you for reaching out. Case a was paid. I hope this helps."
    stripped = stripper.strip_and_count("t", answer, example_id="1")
    assert stripped.text == "Case a was paid."
    assert stripped.removed == (
        "opening: sure",
        "opening: thank you for reaching out",
        "closing: i hope this helps",
    )
    assert stripper.strip_and_count("t", "Case b was paid.", example_id="2").removed == ()
    kept = stripper.strip_and_count("t", "Sure! Paid.", example_id="3")
    assert (kept.text, kept.num_left) == ("Sure! Paid.", 1)
    assert stripper.strip("other", THANKED[0]).text == THANKED[0]
    report = stripper.report().to_json()
    assert (report["num_answers"], report["num_changed"], report["num_left"]) == (3, 1, 1)
    assert report["removed"] == [
        {"teacher": "t", "phrase": phrase, "num_answers": 1} for phrase in sorted(stripped.removed)
    ]
    assert report["shown"] == [{"example_id": "1", "before": answer, "after": "Case a was paid."}]
    assert report["frequent"][0]["phrase"] == "thank you for reaching out"


def test_what_an_instruction_asks_for_stays() -> None:
    phrases = count(*THANKED).find_stock_phrases(SETTINGS)
    instructions = ['Make sure to begin with "Thank you for reaching out".']
    stripper = FlavourStripper(phrases, settings=SETTINGS, instructions=instructions)
    assert stripper.strip("t", THANKED[0]).removed == ()
    # "make sure" asks for no "Sure!".
    assert stripper.strip("t", "Sure! Case a was paid.").text == "Case a was paid."


def test_settings_add_and_keep() -> None:
    settings = FlavourSettings(
        extra_openings=("Ahoy!",),
        extra_closings=("Over and out",),
        keep_phrases=("Sure", "I hope this helps."),
    )
    stripper = FlavourStripper((), settings=settings)
    assert stripper.strip("t", "Ahoy! Case a was paid. Over and out!").text == "Case a was paid."
    kept = "Sure! Case a was paid. I hope this helps."
    assert stripper.strip("t", kept).text == kept


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    "text", ["Sure! " * 40_000, "." * 300_000, "a " * 150_000, "\n" * 300_000, "好的，" * 70_000]
)
def test_hostile_texts_are_read_in_no_time(text: str) -> None:
    counter = count(text)
    FlavourStripper(counter.find_stock_phrases(SETTINGS), settings=SETTINGS).strip("t", text)
