import time
from typing import Any

import pytest

from evaluation.engine.scoring.regression import (
    ChoiceRule,
    ContainsRule,
    ExactRule,
    RegexRule,
    ScoringRuleError,
    parse_scoring_rule,
    score_choice,
    score_text,
)


@pytest.mark.parametrize(
    ("rule", "output", "passed"),
    [
        (ExactRule("Paris"), " paris\n", True),
        (ExactRule("Paris"), "Paris.", False),
        (ExactRule("Paris", is_case_sensitive=True), "paris", False),
        (ContainsRule(("yes", "no")), "Well, YES.", True),
        (ContainsRule(("yes", "no"), "all"), "yes", False),
        (ContainsRule(("Yes",), is_case_sensitive=True), "yes", False),
        (RegexRule(r"\A[^a-z]*\Z"), "ALL CAPITALS 1", True),
        (RegexRule(r"\A[^a-z]*\Z"), "Not All", False),
        (RegexRule(r"(?i)sorry"), "I'm SORRY", True),
    ],
)
def test_score_text(rule: ExactRule | ContainsRule | RegexRule, output: str, passed: bool) -> None:
    assert score_text(rule, output) is passed


def test_a_pattern_that_backtracks_without_end_is_stopped() -> None:
    started = time.monotonic()
    assert not score_text(RegexRule(r"^(\w+\s?)*$"), "word " * 40 + "!")
    assert time.monotonic() - started < 30


def test_choice_is_normalised_by_characters() -> None:
    # By hand: -4 / 2 = -2 a character against -6 / 6 = -1; the sum alone would choose "no".
    rule = ChoiceRule("B", ("A", "B"), ("no", "it can"))
    outcome = score_choice(rule, [-4.0, -6.0])
    assert outcome.chosen == "B"
    assert outcome.scores == {"A": -2.0, "B": -1.0}


def test_choice_wants_a_number_for_each_option() -> None:
    with pytest.raises(ValueError, match="1 numbers for 2"):
        score_choice(ChoiceRule("A", ("A", "B"), ("x", "y")), [-1.0])


def test_parse_scoring_rule_reads_every_kind() -> None:
    assert parse_scoring_rule({"type": "exact", "answer": "4"}) == ExactRule("4")
    assert parse_scoring_rule({"type": "contains", "values": ["a"], "mode": "all"}) == ContainsRule(
        ("a",), "all"
    )
    assert parse_scoring_rule({"type": "regex", "pattern": "a+"}) == RegexRule("a+")
    assert parse_scoring_rule({"type": "choice", "answer": "B", "choices": ["x", "y"]}) == ChoiceRule(
        "B", ("A", "B"), ("x", "y")
    )


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        {"type": "bleu"},
        {"type": ["exact"]},
        {"type": "exact", "answer": " "},
        {"type": "exact", "answer": "a", "case_sensitive": "no"},
        {"type": "contains", "values": []},
        {"type": "contains", "values": ["a", ""]},
        {"type": "contains", "values": ["a"], "mode": "some"},
        {"type": "regex", "pattern": "("},
        {"type": "choice", "answer": "C", "choices": ["x", "y"]},
        {"type": "choice", "answer": "A", "choices": ["x"]},
        {"type": "choice", "answer": "A", "choices": ["x", "y"], "labels": ["A", "A"]},
        {"type": "choice", "answer": "A", "choices": ["x", "y"], "question": ""},
    ],
)
def test_faulty_rules_are_refused(document: Any) -> None:
    with pytest.raises(ScoringRuleError):
        parse_scoring_rule(document)
