# ruff: noqa: RUF001 (full-width marks are what is tested)
import json
import sys

import pytest

from tests.training.engine.data.cleaning.steps import clean, clean_one, make_example
from training.engine.data.cleaning import language, language_detector
from training.engine.data.cleaning.language import KIND, guess_language, judge_language
from training.engine.data.cleaning.language_detector import SCRIPT_OF, compare_languages, scripts_of
from training.engine.errors import ConfigInvalid

ENGLISH = "The invoice of last month is wrong and nobody answers my mails."
GERMAN = "Die Rechnung vom letzten Monat ist leider falsch berechnet worden."
FRENCH = "Je ne peux plus me connecter depuis ce matin, aidez-moi."
CHINESE = "上个月的发票金额不对，请尽快处理。"
JAPANESE = "先月の請求書の金額が間違っています。早めに直してください。"
KOREAN = "지난달 청구서 금액이 잘못되었습니다."
RUSSIAN = "Счёт за прошлый месяц выставлен неправильно."
SWEDISH = "Fakturan för förra månaden är felaktig och ingen svarar på mina brev."


def reason_of(text: str, *expected: str, quoted: str = "") -> str:
    return judge_language(text, frozenset(expected), margin=0.5, quoted=quoted).reason


@pytest.mark.parametrize(
    ("text", "language"),
    [
        (ENGLISH, "en"),
        (GERMAN, "de"),
        (FRENCH, "fr"),
        (CHINESE, "zh"),
        (JAPANESE, "ja"),
        (KOREAN, "ko"),
        (RUSSIAN, "ru"),
    ],
)
def test_each_language_fits_itself_only(text: str, language: str) -> None:
    assert guess_language(text) == language
    for expected in ("en", "de", "fr", "zh", "ja", "ko", "ru"):
        assert reason_of(text, expected) == ("" if expected == language else "wrong-language"), expected
    assert reason_of(text, "sv", language) == ""


@pytest.mark.parametrize(
    "text",
    [
        "请把 Microsoft Surface Pro 和 iPhone 15 Pro Max 的订单合并",
        "iPhone 15 Pro Max 256GB 深空黑",
        "Samsung Galaxy S24 Ultra Titanium Gray",
        "SF1234567890",
        "OK",
        "打开 https://www.example.com/the/is/of/and.html",
        "运行 `the is of and in for you` 即可",
        "喜欢の味道",
        "",
    ],
)
def test_chinese_with_foreign_names_is_chinese(text: str) -> None:
    assert reason_of(text, "zh") == ""


@pytest.mark.parametrize(
    "text",
    [
        "- Ragu alla Bolognese\n- Risotto\n- Spaghetti alla Carbonara\n- Napoletana Pizza",
        "Portland, Oregon",
        "Guten Tag",
        "c'est la vie",
        "def main(): return None",
        '{"type":"login","module":"web"}',
    ],
)
def test_short_texts_and_names_are_not_judged(text: str) -> None:
    assert reason_of(text, "en") == ""


def test_mixed_text_is_only_flagged() -> None:
    assert reason_of(f"{ENGLISH} {ENGLISH} 上个月的发票金额不对", "en") == "mixed-language"


def test_of_json_only_longer_values_that_are_no_quotes_count() -> None:
    wrong = json.dumps({"summary": GERMAN, "type": "billing"})
    assert reason_of(wrong, "en") == "wrong-language"
    assert reason_of(wrong, "en", quoted=f"He wrote: {GERMAN}") == ""
    assert reason_of(json.dumps({GERMAN: "billing"}), "en") == ""
    assert reason_of(json.dumps({"summary": CHINESE}), "en") == "wrong-language"


def test_languages_that_are_not_compared_are_still_not_the_expected_one() -> None:
    assert reason_of(SWEDISH, "en") == "wrong-language"
    assert reason_of(SWEDISH, "sv") == ""


def test_given_languages() -> None:
    examples = [make_example(ENGLISH, text) for text in (ENGLISH, CHINESE, GERMAN)]
    cleaned = clean(KIND, examples, languages=["en", "zh"])
    assert cleaned.reasons == [(), (), ("wrong-language-answer",)]
    assert cleaned.outcomes[2].example is None
    assert cleaned.outcomes[2].detail == "de"
    assert cleaned.facts["answers"] == {"expected": ["en", "zh"], "is_judged": True}


def test_dominant_language_is_learnt_for_each_side() -> None:
    examples = [make_example(CHINESE, ENGLISH)] * 24 + [make_example(KOREAN, RUSSIAN)]
    cleaned = clean(KIND, examples)
    assert set(cleaned.reasons[:24]) == {()}
    assert cleaned.reasons[24] == ("wrong-language-answer",)
    assert cleaned.facts["answers"]["learnt_from"] == {"en": 24, "ru": 1}
    assert cleaned.facts["inputs"]["expected"] == ["zh"]


def test_inputs_are_only_flagged() -> None:
    example = make_example(GERMAN, ENGLISH)
    outcome = clean_one(KIND, example, languages=["en"], input_languages=["en"])
    assert (outcome.example, outcome.reasons) == (example, ("wrong-language-input",))
    assert clean_one(KIND, example, languages=["en"], input_languages=None).reasons == ()


def test_nothing_is_done_without_a_dominant_language() -> None:
    halves = [make_example("q", text) for text in (ENGLISH, CHINESE)] * 12
    cleaned = clean(KIND, halves)
    assert cleaned.num_dropped == 0
    assert cleaned.facts["answers"]["why_not"] == "no language has 80% of the texts"
    few = clean(KIND, [make_example("q", ENGLISH)] * 19)
    assert few.facts["answers"]["is_judged"] is False
    assert "fewer than 20" in few.facts["answers"]["why_not"]


@pytest.mark.parametrize("request_", ["Translate this into German.", "用德语回答", "翻译下面的话"])
def test_answers_in_a_language_that_was_asked_for_are_only_flagged(request_: str) -> None:
    outcome = clean_one(KIND, make_example(request_, GERMAN), languages=["en"], input_languages=None)
    assert outcome.example is not None
    assert outcome.reasons == ("wrong-language-answer",)


def test_general_examples_are_left_alone() -> None:
    assert clean_one(KIND, make_example("q", GERMAN, is_general=True), languages=["zh"]).reasons == ()


@pytest.mark.parametrize("languages", [[], ["xx"], "en", [["en"]], 5])
def test_unknown_languages_are_refused(languages: object) -> None:
    with pytest.raises(ConfigInvalid, match="ISO 639-1"):
        clean(KIND, [], languages=languages)


def test_scripts() -> None:
    assert scripts_of("ja") == {"han", "kana"}
    assert scripts_of("de") == {"latin"}
    assert len(SCRIPT_OF) == 75  # the languages of lingua 2


def test_confidences_are_of_one_sum() -> None:
    confidences = compare_languages(GERMAN, "latin", frozenset({"sv"}))
    assert sum(confidences.values()) == pytest.approx(1.0)
    assert "sv" in confidences
    assert compare_languages("too short", "latin", frozenset()) == {}
    assert compare_languages(CHINESE * 3, "han", frozenset({"zh"})) == {}


def test_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "lingua", None)
    language_detector._load_detector.cache_clear()
    language_detector._compute_confidences.cache_clear()
    with pytest.raises(ConfigInvalid, match=r"assay-gate\[data\]"):
        compare_languages(ENGLISH, "latin", frozenset({"en"}))
    language_detector._load_detector.cache_clear()
    language_detector._compute_confidences.cache_clear()


def test_behind_the_first_texts_every_tenth_is_learnt_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(language, "ALL_TEXTS", 40)
    cleaned = clean(KIND, [make_example(CHINESE, CHINESE)] * 100)
    # The first 40, and numbers 50, 60, 70, 80, 90 and 100.
    assert cleaned.facts["answers"]["learnt_from"] == {"zh": 46}
