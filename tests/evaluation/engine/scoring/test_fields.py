from typing import Any

import pytest

from evaluation.engine.scoring.fields import (
    MISSING,
    NORMALISERS,
    FieldRule,
    compare_fields,
    field_score,
    look_up,
    normalise,
)


def rule(name: str, *normalisers: str) -> FieldRule:
    return FieldRule(name, is_key=False, normalisers=normalisers)


@pytest.mark.parametrize(
    ("value", "names", "expected"),
    [
        (" High ", ["strip", "casefold"], "high"),
        ("a \t b\u3000c", ["collapse_whitespace"], "a b c"),
        ("\uff21\uff11\uff0c\u3000\uff5a", ["fold_width"], "A1, z"),
        ("\u2460\u3231", ["fold_width"], "\u2460\u3231"),  # NFKC would make "1" and "(株)" of these
        ("Stra\u00dfe", ["casefold"], "strasse"),
        ("e\u0301", ["nfc"], "\u00e9"),
        (["A ", {"k": " B"}], ["strip", "casefold"], ["a", {"k": "b"}]),
        (3, ["strip"], 3),
    ],
)
def test_normalise(value: Any, names: list[str], expected: Any) -> None:
    assert normalise(value, names) == expected


def test_every_normaliser_leaves_its_own_result_alone() -> None:
    for name in NORMALISERS:
        once = normalise(" \uff21\u3000 E\u0301\u00df ", [name])
        assert normalise(once, [name]) == once


def test_look_up_follows_dots_unless_the_key_has_them() -> None:
    assert look_up({"slots": {"city": "Rome"}}, "slots.city") == "Rome"
    assert look_up({"slots.city": 1, "slots": {"city": 2}}, "slots.city") == 1
    assert look_up({"slots": "text"}, "slots.city") is MISSING
    assert look_up({"slots": {}}, "slots.city") is MISSING
    assert look_up([1], "a") is MISSING


def test_compare_fields_scores_the_fraction_that_matches() -> None:
    rules = (rule("type", "casefold"), rule("urgency"), rule("slots.city"), rule("note"))
    reference = {"type": "Bug", "urgency": 1, "slots": {"city": "Rome"}, "note": None}
    output = {"type": "bug", "urgency": True, "slots": {}, "note": None}
    results = compare_fields(rules, reference, output)
    assert {name: result.is_correct for name, result in results.items()} == {
        "type": True,
        "urgency": False,  # true is not 1
        "slots.city": False,
        "note": True,
    }
    assert field_score(results) == 0.5  # 2 of 4 by hand
    assert results["slots.city"].to_json() == {
        "expected": "Rome",
        "observed": None,
        "observed_missing": True,
        "correct": False,
    }


def test_a_field_that_both_lack_is_right_and_null_is_not_missing() -> None:
    results = compare_fields((rule("a"), rule("b")), {"b": None}, {})
    assert results["a"].is_correct
    assert not results["b"].is_correct


def test_an_output_that_did_not_parse_has_no_field_right() -> None:
    assert field_score(compare_fields((rule("a"),), {}, MISSING)) == 0.0


def test_a_score_needs_fields() -> None:
    with pytest.raises(ValueError, match="at least one"):
        field_score({})
