# ruff: noqa: RUF001 (full-width marks are what is tested)
import pytest

from registry.artifacts.findings import Severity
from tests.training.engine.data.checks.conftest import Make, Run
from training.engine.data.checks.truncation import KIND, find_unbalanced, is_json_cut

WHOLE = "The router was restarted and the line is stable."


def test_json_that_ends_before_its_end(run: Run, make: Make) -> None:
    found = run(KIND, make(("q", {"a": "b"}), ("q", '{"a": "b"'), ("q", '{"a": "lo'), ("q", '[{"a": 1}, {"')))
    assert [(item.code, item.severity, item.num_examples) for item in found] == [
        ("json-cut-off", Severity.ERROR, 3)
    ]
    assert found[0].example_ids == ("e1", "e2", "e3")


@pytest.mark.parametrize(
    ("answer", "is_cut"),
    [
        ('{"a": 1', True),
        ('{"a": "x}', True),
        ('{"a": "x\\"}', True),
        ("[", True),
        ('{"a": 1}', False),
        ('{"a": "{["} trailing', False),
        ("[draft] some words", False),
        ("{name} please", False),
        ("plain", False),
    ],
)
def test_is_json_cut(answer: str, is_cut: bool) -> None:
    assert is_json_cut(answer) is is_cut


def test_answers_without_a_final_mark(run: Run, make: Make) -> None:
    found = run(KIND, make(*[("q", WHOLE)] * 38, ("q", WHOLE[:-10]), ("q", "客户的网络目前已经恢复正常而")))
    assert [(item.code, item.num_examples, item.example_ids) for item in found] == [
        ("no-final-mark", 2, ("e38", "e39"))
    ]
    assert "95% of all have one" in found[0].message


def test_where_a_final_mark_is_not_the_rule(run: Run, make: Make) -> None:
    assert run(KIND, make(*[("q", WHOLE)] * 10, *[("q", WHOLE[:-1])] * 10)) == ()
    assert (
        run(KIND, make(*[("q", WHOLE)] * 38, ("q", "egg cell"), ("q", "- one step\n- another small step")))
        == ()
    )


@pytest.mark.parametrize(
    "answer", ["It was restarted, and", "Restart the router, the modem,", "系统已经恢复，", "这是因为"]
)
def test_ends_in_mid_sentence(run: Run, make: Make, answer: str) -> None:
    answer = f"{WHOLE} {answer}"
    found = run(KIND, make(*[("q", WHOLE)] * 30, ("q", answer)))
    assert [(item.code, item.example_ids) for item in found] == [("ends-in-mid-sentence", ("e30",))]


@pytest.mark.parametrize(
    ("answer", "marks"),
    [
        ("```python\nprint(1)", ["```"]),
        ("```python\nprint((1)\n```", []),
        ("see (the manual", ["("]),
        ("见《手册", ["《"]),
        ('he said "yes', ['"']),
        ("他说“好", ["“"]),
        ('a 19" screen', []),
        ("1) first\n2) second", []),
        ("fine :-)", []),
        ("f(x) = [1, 2] {a}", []),
        ("`f(` opens", []),
    ],
)
def test_unbalanced_marks(answer: str, marks: list[str]) -> None:
    assert find_unbalanced(answer) == marks


def test_a_limit_on_length(run: Run, make: Make) -> None:
    # 30 answers of very different lengths, and 10 that were cut at 1000 characters.
    whole = [("q", ("word " * (20 + 5 * i)).strip() + ".") for i in range(30)]
    cut = [("q", ("long words here " * 80)[: 1000 - i % 3]) for i in range(10)]
    found = run(KIND, make(*whole, *cut))
    assert [(item.code, item.num_examples) for item in found] == [("cut-at-one-length", 10)]
    assert "10 answers lie within 1 % of the greatest length, 1000 characters" in found[0].message


def test_lengths_that_fall_off_are_no_limit(run: Run, make: Make) -> None:
    assert run(KIND, make(*[("q", ("word " * (50 + i)).strip() + ".") for i in range(60)])) == ()


def test_parameter(run: Run, make: Make) -> None:
    pairs = make(*[("q", WHOLE)] * 15, *[("q", WHOLE[:-1])] * 5)
    assert run(KIND, pairs) == ()
    assert [item.code for item in run(KIND, pairs, min_terminal_fraction=0.7)] == ["no-final-mark"]
