"""Cleaning step: answers in another language than the dataset's (MISSION C3(3)).

The writing system is looked at first: it is sure on short texts too. A statistical detector is asked only
about longer texts, and believed only with a margin. Chinese with English product names is Chinese. Of JSON
answers only longer string values are read, and none that quote the input; code, addresses and general
instruction data are not read at all. Where the input asks for another language, an answer is only flagged.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from training.engine.data.cleaning.json_answers import is_json_container, string_values
from training.engine.data.cleaning.language_detector import (
    MIN_LETTERS,
    SCRIPT_OF,
    compare_languages,
    scripts_of,
)
from training.engine.data.cleaning.normalising.protected import mask_protected
from training.engine.data.cleaning.step import Outcome, StepContext, StepKind
from training.engine.data.cleaning.writing_systems import LETTERS_PER_CHARACTER, weigh_scripts
from training.engine.data.examples import Example
from training.engine.settings_rules import Rule, number, optional

AUTO = "auto"
"""The dominant language, learnt in the first pass."""
MIN_WEIGHT = 12
"""Letters of another writing system from which a text can be wrong: 4 Han characters, 6 kana, 12 others."""
WRONG_SHARE, MIXED_SHARE = 0.5, 0.2
"""Share of other writing systems from which a text is wrong, or mixed and only flagged."""
KANA_SHARE = 0.2
"""Share of kana among kana and Han from which Han is Japanese; running Japanese has about 0.5 and more."""
MIN_HAN_ALONE = 30
"""Letters' worth of Han, ten characters, from which a text without kana and Hangul is Chinese."""
MIN_DOMINANT_FRACTION = 0.8
MIN_TEXTS_TO_LEARN = 20
ALL_TEXTS, SAMPLE_PERIOD = 5_000, 10
"""Up to 5,000 texts all are learnt from, behind that every tenth: the detector is the slowest part of all."""
_MAX_OWN_SHARE_OF_LATIN_TEXT = 0.1
_MAX_VALUES = 2000
"""Of a JSON answer: each value costs a search through the input."""
_MIN_FUNCTION_WORDS = 2
_WORDS = re.compile(r"[a-z\u00e0-\u00ff]+")
# A run of names or a shell command is no English text; sentences hold words like these.
_FUNCTION_WORDS = frozenset(
    _WORDS.findall(
        "the an is are was were to of and in for you it that with not can be on this your have will or as "
        "der die das und ist nicht ich sie wir ein eine mit zu auf le les et est des une pas vous nous pour "
        "je ne ce se sur que el los las es por con para una su il che di non per sono del della uma com os"
    )
)
_ASKS_FOR_LANGUAGE = re.compile(
    r"translat|翻译|翻譯|译[成为]|[中英日韩德法俄][文语]"
    r"|\b(?:arabic|chinese|dutch|english|french|german|greek|hebrew|hindi|italian|japanese|korean|latin"
    r"|mandarin|polish|portuguese|russian|spanish|thai|turkish|ukrainian|vietnamese)\b"
    r"|汉语|西班牙语|阿拉伯语|葡萄牙语|意大利语",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is thought of a text's language.

    Attributes:
        reason: ``wrong-language``, ``mixed-language`` or "".
        found: ISO 639-1 code or writing system that was seen instead; "" when nothing was.
    """

    reason: str = ""
    found: str = ""


def judge_language(text: str, expected: frozenset[str], *, margin: float, quoted: str = "") -> Verdict:
    """Return whether a text is in none of the expected languages.

    Args:
        text: An answer or input; code and addresses in it do not count.
        quoted: The input, when the text is an answer.
        expected: ISO 639-1 codes.
        margin: By how much the detector's confidence in another language must exceed that in every expected
            one, 0-1.
    """
    prose = _take_prose(text, quoted)
    weights = weigh_scripts(prose)
    total = sum(weights.values())
    if not total:
        return Verdict()
    scripts = frozenset().union(*(scripts_of(code) for code in expected))
    by_script = _judge_scripts(weights, scripts, expects_chinese="zh" in expected)
    if by_script.reason:
        return by_script
    if "latin" not in scripts:
        own = sum(weights.get(script, 0) for script in scripts)
        is_wrong = own <= _MAX_OWN_SHARE_OF_LATIN_TEXT * total and _is_latin_sentence(prose, weights)
        return Verdict("wrong-language", "latin") if is_wrong else Verdict()
    script = max(weights, key=lambda name: (weights[name], name))
    confidences = compare_languages(prose, script, expected)
    if not confidences:
        return Verdict()
    found = max(confidences, key=lambda code: (confidences[code], code))
    best_expected = max(confidences.get(code, 0.0) for code in expected)
    return Verdict("wrong-language", found) if confidences[found] - best_expected >= margin else Verdict()


def guess_language(text: str, *, quoted: str = "") -> str:
    """Return the ISO 639-1 code of the language that a text is surely in, or "" when it is too short or not
    sure; the arguments are those of ``judge_language``.
    """
    prose = _take_prose(text, quoted)
    weights = weigh_scripts(prose)
    if sum(weights.values()) < MIN_WEIGHT:
        return ""
    if _is_japanese(weights):
        return "ja"
    script = max(weights, key=lambda name: (weights[name], name))
    if weights[script] < WRONG_SHARE * sum(weights.values()):
        return ""
    written_so = [code for code, own in SCRIPT_OF.items() if own == script]
    if len(written_so) == 1:
        return written_so[0]
    confidences = compare_languages(prose, script, frozenset())
    sure = [code for code, confidence in confidences.items() if confidence > WRONG_SHARE]
    return sure[0] if sure else ""


def _take_prose(text: str, quoted: str) -> str:
    if is_json_container(text):
        read = islice(string_values(text), _MAX_VALUES)
        long_enough = (value for value in read if _may_weigh(value) and _weigh(value) >= MIN_LETTERS)
        return "\n".join(value for value in long_enough if value not in quoted)
    masked = mask_protected(text)
    return masked.text.replace(masked.stand_in, " ")


def _may_weigh(text: str) -> bool:
    """Return whether a text has characters enough for `MIN_LETTERS`."""
    most = 1 if text.isascii() else max(LETTERS_PER_CHARACTER.values())
    return most * len(text) >= MIN_LETTERS


def _weigh(text: str) -> int:
    return sum(weigh_scripts(text).values())


def _judge_scripts(weights: Mapping[str, int], scripts: frozenset[str], *, expects_chinese: bool) -> Verdict:
    # Han characters are shared: what stands between them tells.
    if "han" in scripts and "kana" not in scripts and _is_japanese(weights):
        return Verdict("wrong-language", "ja")
    if "han" in scripts and not expects_chinese and _is_chinese(weights):
        return Verdict("wrong-language", "zh")
    total = sum(weights.values())
    foreign = {name: weight for name, weight in weights.items() if name not in scripts and name != "latin"}
    weight = sum(foreign.values())
    if weight < MIN_WEIGHT or weight < MIXED_SHARE * total:
        return Verdict()
    found = max(foreign, key=lambda name: (foreign[name], name))
    return Verdict("wrong-language" if weight >= WRONG_SHARE * total else "mixed-language", found)


def _is_japanese(weights: Mapping[str, int]) -> bool:
    kana = weights.get("kana", 0) // LETTERS_PER_CHARACTER["kana"]
    han = weights.get("han", 0) // LETTERS_PER_CHARACTER["han"]
    return kana * LETTERS_PER_CHARACTER["kana"] >= MIN_WEIGHT and kana >= KANA_SHARE * (kana + han)


def _is_chinese(weights: Mapping[str, int]) -> bool:
    return weights.get("han", 0) >= MIN_HAN_ALONE and not weights.keys() & {"kana", "hangul"}


def _is_latin_sentence(prose: str, weights: Mapping[str, int]) -> bool:
    if weights.get("latin", 0) < MIN_LETTERS:
        return False
    return len(_FUNCTION_WORDS.intersection(_WORDS.findall(prose.lower()))) >= _MIN_FUNCTION_WORDS


class _Expectation:
    """The languages that one side of a dataset should be in: given, or learnt as the dominant one."""

    def __init__(self, languages: str | tuple[str, ...] | None) -> None:
        self.is_learnt = languages == AUTO
        self._given = frozenset() if languages is None or isinstance(languages, str) else frozenset(languages)
        self._counts: Counter[str] = Counter()
        self._num_seen = 0
        self._languages: frozenset[str] | None = None

    def observe(self, text: str, *, quoted: str = "") -> None:
        self._num_seen += 1
        is_looked_at = self._num_seen <= ALL_TEXTS or self._num_seen % SAMPLE_PERIOD == 0
        if self.is_learnt and is_looked_at and (language := guess_language(text, quoted=quoted)):
            self._counts[language] += 1
            self._languages = None

    def languages(self) -> frozenset[str]:
        """Return the languages; empty when none is expected."""
        if self._languages is None:
            self._languages = self._learn() if self.is_learnt else self._given
        return self._languages

    def _learn(self) -> frozenset[str]:
        total = self._counts.total()
        if total < MIN_TEXTS_TO_LEARN:
            return frozenset()
        language, times = max(self._counts.items(), key=lambda item: (item[1], item[0]))
        return frozenset((language,)) if times >= MIN_DOMINANT_FRACTION * total else frozenset()

    def facts(self) -> Mapping[str, Any]:
        languages = self.languages()
        facts: dict[str, Any] = {"expected": sorted(languages), "is_judged": bool(languages)}
        if self.is_learnt:
            facts["learnt_from"] = dict(sorted(self._counts.items(), key=lambda item: (-item[1], item[0])))
            if not languages:
                facts["why_not"] = (
                    f"fewer than {MIN_TEXTS_TO_LEARN} texts are long enough to tell their language"
                    if self._counts.total() < MIN_TEXTS_TO_LEARN
                    else f"no language has {MIN_DOMINANT_FRACTION:.0%} of the texts"
                )
        return facts


class _DropWrongLanguage:
    def __init__(self, parameters: Mapping[str, Any], _context: StepContext) -> None:
        self._answers = _Expectation(parameters["languages"])
        self._inputs = _Expectation(parameters["input_languages"])
        self._margin: float = parameters["margin"]

    def observe(self, example: Example) -> None:
        if not example.is_general:
            self._answers.observe(example.answer or "", quoted=example.input_text)
            self._inputs.observe(example.input_text)

    def apply(self, example: Example) -> Outcome:
        if example.is_general:
            return Outcome.kept(example)
        text = example.input_text
        answer = self._judge(example.answer or "", self._answers, quoted=text)
        if answer.reason == "wrong-language" and not _ASKS_FOR_LANGUAGE.search(text):
            return Outcome.dropped("wrong-language-answer", detail=answer.found)
        verdicts = {"answer": answer, "input": self._judge(text, self._inputs)}
        flags = {f"{verdict.reason}-{side}": verdict for side, verdict in verdicts.items() if verdict.reason}
        return Outcome.flagged(example, *flags, detail=", ".join(flag.found for flag in flags.values()))

    def facts(self) -> Mapping[str, Any]:
        return {"answers": self._answers.facts(), "inputs": self._inputs.facts()}

    def _judge(self, text: str, expectation: _Expectation, *, quoted: str = "") -> Verdict:
        expected = expectation.languages()
        if not expected:
            return Verdict()
        return judge_language(text, expected, margin=self._margin, quoted=quoted)


def _read_languages(value: Any) -> str | tuple[str, ...]:
    if value == AUTO:
        return AUTO
    if not isinstance(value, list | tuple) or not value:
        raise ValueError
    if not all(isinstance(code, str) and code in SCRIPT_OF for code in value):
        raise ValueError
    return tuple(dict.fromkeys(value))


_LANGUAGES = Rule("auto or a list of ISO 639-1 codes such as [zh, en]", _read_languages)

KIND = StepKind(
    name="drop_wrong_language",
    version=1,
    summary="Drops answers in another language than the dataset's; inputs in another language are flagged.",
    source="MISSION C3(3), FACTS 8",
    rules={
        "languages": _LANGUAGES,
        "input_languages": optional(_LANGUAGES),
        "margin": number(0.0, 1.0, low_open=True),
    },
    defaults={"languages": AUTO, "input_languages": AUTO, "margin": 0.5},
    build=_DropWrongLanguage,
    needs_first_pass=True,
    is_local=True,
)
KINDS: tuple[StepKind, ...] = (KIND,)
