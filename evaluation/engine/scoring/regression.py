"""Scoring rules of regression examples: exact, contains, regex, and choice by likelihood (F3, F8).

Choice: a small model asked for a letter gives the same letter nearly always (FACTS section 5), so the
options' texts are compared instead: for each option the sum of the log-probabilities of its tokens after the
question, divided by the number of characters of its text. That is ``acc_norm`` of lm-evaluation-harness; the
division keeps short options from winning by being short, and characters, unlike tokens, do not depend on how
well the tokenizer knows a word.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any, Literal

REGEX_TIMEOUT_SECONDS = 1.0
"""A pattern that needs longer on one output backtracks without end; the output then fails."""

MAX_SCORED_CHARACTERS = 50_000
"""Outputs are cut to this before a pattern is tried; max_tokens keeps real ones far below."""


@dataclass(frozen=True, slots=True)
class ExactRule:
    """Passes when the stripped output equals the answer."""

    answer: str
    is_case_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class ContainsRule:
    """Passes when any or all of the values occur in the output."""

    values: tuple[str, ...]
    mode: Literal["any", "all"] = "any"
    is_case_sensitive: bool = False


@dataclass(frozen=True, slots=True)
class RegexRule:
    """Passes when ``re.search`` finds the pattern anywhere in the output; no flags but those inside it."""

    pattern: str


@dataclass(frozen=True, slots=True)
class ChoiceRule:
    """Passes when the right option is the most likely one.

    Attributes:
        answer: Label of the right option.
        labels: Labels of the options, such as A to E.
        choices: Texts of the options.
        question: Asked instead of the example's last user message, because that one lists the options with
            their letters; None to ask the message as it is.
    """

    answer: str
    labels: tuple[str, ...]
    choices: tuple[str, ...]
    question: str | None = None


ScoringRule = ExactRule | ContainsRule | RegexRule | ChoiceRule


@dataclass(frozen=True, slots=True)
class ChoiceOutcome:
    """The most likely option and the score of each.

    Attributes:
        chosen: Label of the most likely option; the first of equals.
        scores: Log-probability per character, in nats, by label.
    """

    chosen: str
    scores: Mapping[str, float]


class ScoringRuleError(ValueError):
    """A ``scoring`` object is not valid; the message says why."""


def parse_scoring_rule(document: Any) -> ScoringRule:
    """Read an example's ``scoring`` object.

    Raises:
        ScoringRuleError: It is not one of the known rules.
    """
    if not isinstance(document, Mapping):
        raise ScoringRuleError("scoring must be an object")
    kind = document.get("type")
    readers: dict[str, Callable[[Mapping[str, Any]], ScoringRule]] = {
        "exact": _read_exact,
        "contains": _read_contains,
        "regex": _read_regex,
        "choice": _read_choice,
    }
    if not isinstance(kind, str) or kind not in readers:
        raise ScoringRuleError(f"scoring.type must be one of {', '.join(readers)}, not {kind!r}")
    return readers[kind](document)


def score_text(rule: ExactRule | ContainsRule | RegexRule, output: str) -> bool:
    """Say whether a generated output passes its rule."""
    text = output[:MAX_SCORED_CHARACTERS]
    if isinstance(rule, ExactRule):
        return _fold(text.strip(), rule.is_case_sensitive) == _fold(
            rule.answer.strip(), rule.is_case_sensitive
        )
    if isinstance(rule, ContainsRule):
        folded = _fold(text, rule.is_case_sensitive)
        found = (_fold(value, rule.is_case_sensitive) in folded for value in rule.values)
        return all(found) if rule.mode == "all" else any(found)
    return _search(rule.pattern, text)


def score_choice(rule: ChoiceRule, log_probabilities: Sequence[float]) -> ChoiceOutcome:
    """Choose the option with the highest log-probability per character.

    Args:
        rule: The options.
        log_probabilities: Sum of the token log-probabilities of each option's text, in nats, in the options'
            order.

    Raises:
        ValueError: Not one number for each option.
    """
    if len(log_probabilities) != len(rule.choices):
        raise ValueError(f"{len(log_probabilities)} numbers for {len(rule.choices)} options")
    scores = {
        label: total / len(text)
        for label, text, total in zip(rule.labels, rule.choices, log_probabilities, strict=True)
    }
    return ChoiceOutcome(max(scores, key=lambda label: scores[label]), scores)


def _search(pattern: str, text: str) -> bool:
    # ``re`` cannot be stopped; ``regex`` can. It comes with transformers, so workers have it and the web
    # process, which only parses rules, does not.
    import regex  # type: ignore[import-untyped,unused-ignore]

    try:
        return regex.search(pattern, text, timeout=REGEX_TIMEOUT_SECONDS) is not None
    except TimeoutError:
        return False


def _fold(text: str, is_case_sensitive: bool) -> str:
    return text if is_case_sensitive else text.casefold()


def _read_exact(document: Mapping[str, Any]) -> ExactRule:
    answer = document.get("answer")
    if not isinstance(answer, str) or not answer.strip():
        raise ScoringRuleError("scoring.answer must be a text that is not empty")
    return ExactRule(answer, _read_case(document))


def _read_contains(document: Mapping[str, Any]) -> ContainsRule:
    values = _read_texts(document, "values")
    mode = document.get("mode", "any")
    if mode not in ("any", "all"):
        raise ScoringRuleError(f"scoring.mode must be any or all, not {mode!r}")
    return ContainsRule(values, mode, _read_case(document))


def _read_regex(document: Mapping[str, Any]) -> RegexRule:
    pattern = document.get("pattern")
    if not isinstance(pattern, str) or not pattern:
        raise ScoringRuleError("scoring.pattern must be a text that is not empty")
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise ScoringRuleError(f"scoring.pattern is no regular expression: {error}") from error
    return RegexRule(pattern)


def _read_choice(document: Mapping[str, Any]) -> ChoiceRule:
    choices = _read_texts(document, "choices")
    labels = (
        _read_texts(document, "labels") if "labels" in document else tuple(ascii_uppercase[: len(choices)])
    )
    answer, question = document.get("answer"), document.get("question")
    if len(choices) < 2 or len(labels) != len(choices) or len(set(labels)) != len(labels):
        raise ScoringRuleError("scoring needs at least two choices and one label of its own for each")
    if answer not in labels:
        raise ScoringRuleError(f"scoring.answer {answer!r} is none of the labels {', '.join(labels)}")
    if question is not None and (not isinstance(question, str) or not question.strip()):
        raise ScoringRuleError("scoring.question must be a text that is not empty")
    return ChoiceRule(str(answer), labels, choices, question)


def _read_texts(document: Mapping[str, Any], key: str) -> tuple[str, ...]:
    values = document.get(key)
    if (
        not isinstance(values, list)
        or not values
        or not all(isinstance(v, str) and v.strip() for v in values)
    ):
        raise ScoringRuleError(f"scoring.{key} must be a list of texts that are not empty")
    return tuple(values)


def _read_case(document: Mapping[str, Any]) -> bool:
    value = document.get("case_sensitive", False)
    if not isinstance(value, bool):
        raise ScoringRuleError("scoring.case_sensitive must be true or false")
    return value
