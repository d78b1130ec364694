import pytest

from training.engine.data.examples import ChatMessage, Example
from training.engine.data.leakage import AnswerReport, find_leakage

POLICY = "You can return any item within thirty days of the purchase."
CHINESE = "您可以在购买之后的三十天以内退回任何商品。"


def example(name: str, text: str, answer: str) -> Example:
    messages = (ChatMessage("user", text), ChatMessage("assistant", answer))
    return Example(example_id=name, messages=messages)


def report(training: list[Example], *evaluation: Example) -> AnswerReport:
    return find_leakage(training, {"ood": evaluation}).answers


def test_answers_in_inputs() -> None:
    result = report(
        [],
        example("a", f"Shorten this: {POLICY.upper()} Thank you.", POLICY),
        example("b", "Is it A or B?", "B"),
        example("c", POLICY, POLICY),
        example("d", "Is it red?", "blue"),
        example("e", "From Oslo to Rome", '{"from": "Oslo", "to": "Roma", "stops": 0}'),
        example("f", "What?", ""),
    )
    training, ood = result.sets
    assert (training.name, training.num_free_text, training.fraction_in_input) == ("train", 0, None)
    # Of a, b, c, d the answers of a and b; c has nothing to change, e is JSON, f is empty.
    assert (ood.num_free_text, ood.num_in_input, ood.fraction_in_input) == (4, 2, 0.5)
    assert (ood.num_copied, ood.copied_ids) == (1, ("a",))
    assert (ood.num_json_texts, ood.num_json_texts_in_input) == (2, 1)
    (finding,) = result.findings()
    assert (finding.code, finding.where, finding.num_examples) == ("answer-in-input", "ood", 1)
    assert finding.example_ids == ("a",)


@pytest.mark.parametrize(
    ("answer", "is_found"),
    [
        (POLICY, True),
        (CHINESE, True),
        ("one two three four five six seven", False),  # 7 words
        ("one two three four five six seven eight", True),
        ("三十天以内退回任何商品都可以的", False),  # 15 letters
        ('{"a": "one two three four five six seven eight"}', False),
    ],
)
def test_memorisable_answers(answer: str, is_found: bool) -> None:
    training = [example("t1", "x", "other"), example("t2", "y", answer), example("t3", "z", answer)]
    result = report(training, example("e1", "question", f" {answer} "), example("e2", "question", "other"))
    assert result.num_memorisable == int(is_found)
    assert [(item.train_id, item.role, item.example_id) for item in result.memorisable] == (
        [("t2", "ood", "e1")] if is_found else []
    )
    assert [finding.code for finding in result.findings()] == ["memorisable-answer"] * is_found


def test_lists_are_bounded() -> None:
    result = report(
        [example("t", "x", POLICY)], *(example(f"e{i}", f"{POLICY} {i}", POLICY) for i in range(50))
    )
    assert (result.num_memorisable, len(result.memorisable)) == (50, 20)
    assert (result.sets[1].num_copied, len(result.sets[1].copied_ids)) == (50, 5)
