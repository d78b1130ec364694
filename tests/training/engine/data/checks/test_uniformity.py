# ruff: noqa: RUF001 (full-width marks are what is tested)
import pytest

from registry.artifacts.findings import Severity
from tests.training.engine.data.checks.conftest import Make, Run
from training.engine.data.checks.check import DataFinding
from training.engine.data.checks.uniformity import KIND


def by_code(findings: tuple[DataFinding, ...]) -> dict[str, DataFinding]:
    return {item.code: item for item in findings}


def test_alike_answers(run: Run, make: Make) -> None:
    assert run(KIND, make(*[(f"q{i}", {"a": "x", "b": i}) for i in range(20)])) == ()


def test_json_and_text(run: Run, make: Make) -> None:
    found = run(KIND, make(*[("q", {"a": "x"})] * 19, ("q", "I cannot tell.")))
    assert [(item.code, item.num_examples, item.example_ids) for item in found] == [
        ("answer-formats-differ", 1, ("e19",))
    ]


def test_keys_and_their_order(run: Run, make: Make) -> None:
    answers = [{"a": 1, "b": 2}] * 17 + [{"b": 2, "a": 1}] * 2 + [{"a": 1}]
    found = by_code(run(KIND, make(*[("q", answer) for answer in answers])))
    assert found["field-order-differs"].num_examples == 2
    assert found["field-order-differs"].example_ids == ("e17", "e18")
    # 18 of 20 in the usual order: 17, and the one with a key set of its own.
    assert "90.0% of 20" in found["field-order-differs"].message
    assert found["keys-differ"].example_ids == ("e19",)
    assert "missing: b (1); besides: none" in found["keys-differ"].message


def test_optional_keys_only_inform(run: Run, make: Make) -> None:
    answers = [{key: 1} for key in "abcde"] * 4
    found = run(KIND, make(*[("q", answer) for answer in answers]))
    assert [(item.code, item.severity) for item in found] == [("keys-optional", Severity.INFO)]


def test_repeated_keys_are_an_error(run: Run, make: Make) -> None:
    found = run(KIND, make(*[("q", {"a": 1})] * 10, ("q", '{"a": 1, "a": 1}')))
    assert [(item.code, item.severity) for item in found] == [("repeated-keys", Severity.ERROR)]


@pytest.mark.parametrize(
    ("values", "code", "num_rarer"),
    [
        ([3] * 18 + ["3"] * 2, "value-types-differ", 2),
        (["High"] * 15 + ["high"] * 3 + ["ＨＩＧＨ"] * 2, "value-spellings-differ", 5),
        (["2024-01-05"] * 16 + ["2024年1月5日"] * 3 + ["05.01.2024"], "date-formats-differ", 4),
        (["10kg"] * 17 + ["12 kg"] * 3, "units-differ", 3),
        (["10kg"] * 17 + ["12"] * 3, "units-differ", 3),
        (["100元"] * 18 + ["¥100"] * 2, "units-differ", 2),
        (["The printer does not print."] * 18 + ["The printer does not print"] * 2, "final-mark-differs", 2),
    ],
)
def test_forms_of_values(run: Run, make: Make, values: list[object], code: str, num_rarer: int) -> None:
    found = by_code(run(KIND, make(*[("q", {"v": value}) for value in values])))
    assert found[code].num_examples == num_rarer
    assert (found[code].where, found[code].severity) == ("answer/v", Severity.WARNING)


def test_null_is_no_other_type(run: Run, make: Make) -> None:
    assert run(KIND, make(*[("q", {"v": value}) for value in [1, None] * 10])) == ()


def test_several_units_only_inform(run: Run, make: Make) -> None:
    found = run(KIND, make(*[("q", {"v": value}) for value in ["1 kg", "2 km"] * 10]))
    assert [(item.code, item.severity) for item in found] == [("several-units", Severity.INFO)]


def test_quoted_values_follow_their_input(run: Run, make: Make) -> None:
    pairs = [(f"play {value} now", {"artist": value}) for value in ["Abba", "abba"] * 10]
    found = run(KIND, make(*pairs))
    assert [(item.code, item.severity) for item in found] == [("value-spellings-differ", Severity.INFO)]


@pytest.mark.parametrize(
    ("usual", "rare", "code"),
    [
        ("客户反映系统很慢，需要重启。", "客户反映系统很慢,需要重启。", "punctuation-widths-differ"),
        ("The code is 15 and all is well.", "The code is １５ and all is well.", "full-width-letters"),
        ('He said "yes" and left the room.', "He said “yes” and left the room.", "quotes-differ"),
        ("We restarted it and it works again.", "- restart the server\n- test it again", "list-and-prose"),
        ("We restarted it and it works again.", "We restarted it and it works again", "final-marks-differ"),
        ("系统已经恢复正常了。", "系统已经恢复正常了", "final-marks-differ"),
    ],
)
def test_styles_of_text(run: Run, make: Make, usual: str, rare: str, code: str) -> None:
    found = run(KIND, make(*[("q", usual)] * 17, *[("q", rare)] * 3))
    assert [(item.code, item.num_examples, item.example_ids[0]) for item in found] == [(code, 3, "e17")]


def test_rare_styles_and_small_sets_are_left_alone(run: Run, make: Make) -> None:
    quotes = [("q", 'He said "yes" and left.')] * 299 + [("q", "He said “yes” and left.")]
    assert run(KIND, make(*quotes)) == ()
    assert run(KIND, make(("q", {"a": 1}), ("q", "text"))) == ()


def test_general_data_is_passed_over(run: Run, make: Make) -> None:
    task = make(*[("q", {"a": 1})] * 20)
    assert run(KIND, [*task, *make(*[("q", "Some prose.")] * 5, is_general=True)]) == ()


def test_hostile_names_are_shown_safely(run: Run, make: Make) -> None:
    found = run(KIND, make(*[("q", {"a\u202e": "x"})] * 19, ("q", {"a\u202e": 1})))
    assert "\u202e" not in found[0].message + found[0].where
