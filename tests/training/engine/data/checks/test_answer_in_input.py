# ruff: noqa: RUF001 (full-width marks are what is tested)
from registry.artifacts.findings import Severity
from tests.training.engine.data.checks.conftest import Make, Run
from training.engine.data.checks.answer_in_input import KIND

LONG = "the router in room {} must be restarted every single day"


def other(number: int) -> tuple[str, str]:
    return f"question number {number}", f"An answer of its own with {number} as the only shared word here."


def test_copied_answers(run: Run, make: Make) -> None:
    copied = [
        (f"Note: {LONG.format(i)}. Why?", f"The router in room {i} must be restarted every single day")
        for i in range(2)
    ]
    (finding,) = run(KIND, make(*copied, *map(other, range(18))))
    assert (finding.code, finding.severity, finding.num_examples) == ("answer-copied", Severity.INFO, 2)
    assert "2 of 20 free-text answers (10%)" in finding.message
    (finding,) = run(KIND, make(*copied * 5, *map(other, range(10))))
    assert (finding.severity, finding.example_ids[0]) == (Severity.WARNING, "e0")


def test_chinese_answers(run: Run, make: Make) -> None:
    # 12 characters weigh like 8 words, 11 do not.
    text = "请每天早上重启一次路由器"
    assert [item.num_examples for item in run(KIND, make((f"备注：{text}。", text)))] == [1]
    assert run(KIND, make((f"备注：{text}。", text[:11]))) == ()


def test_short_answers_and_json_are_extraction(run: Run, make: Make) -> None:
    assert run(KIND, make((f"{LONG}", "the router in room"), (f"{LONG}", {"text": LONG}))) == ()


def test_nothing_to_change(run: Run, make: Make) -> None:
    def revised(number: int) -> tuple[str, str]:
        text = LONG.format(number)
        return f"{text} becuase it hangs", f"{text} because it hangs"

    same = [(f"{LONG.format(i)} again", f"{LONG.format(i)}  again") for i in range(40)]
    (finding,) = run(KIND, make(*same[:2], *map(revised, range(18))))
    assert (finding.code, finding.severity, finding.num_examples) == ("nothing-to-change", Severity.INFO, 2)
    assert "2 of 20 free-text answers (10%) equal their input" in finding.message
    (finding,) = run(KIND, make(*map(revised, range(20))))
    assert finding.num_examples == 0 and "Add inputs that are right already" in finding.remedy
    (finding,) = run(KIND, make(*same, *map(revised, range(18))))
    assert finding.severity is Severity.WARNING


def test_other_tasks_need_no_unchanged_examples(run: Run, make: Make) -> None:
    assert run(KIND, make(*map(other, range(30)))) == ()


def test_general_data_is_passed_over(run: Run, make: Make) -> None:
    assert run(KIND, make((LONG, LONG), is_general=True)) == ()
