import random
from collections.abc import Callable

import pytest

from registry.artifacts.findings import Severity
from tests.training.engine.data.checks.conftest import Make, Run
from training.engine.data.checks.misalignment import KIND
from training.engine.data.examples import Example

Demo = Callable[[str], tuple[Example, ...]]
WORDS = [f"word{number}" for number in range(400)]
CHARACTERS = [chr(0x4E00 + number) for number in range(2000)]


def rotate(examples: list[Example], shift: int) -> list[Example]:
    """Give each example the answer of the one ``shift`` further down."""
    answers = [example.answer or "" for example in examples]
    return [
        example.with_answer(answers[(number + shift) % len(answers)])
        for number, example in enumerate(examples)
    ]


def extraction(make: Make, num_rows: int, vocabulary: list[str], joint: str) -> list[Example]:
    draw = random.Random(7)
    pairs = []
    for _ in range(num_rows):
        words = draw.sample(vocabulary, 12)
        pairs.append((joint.join(words), {"name": joint.join(words[2:5])}))
    return make(*pairs)


def labelling(make: Make, num_rows: int) -> list[Example]:
    """Labels that no input names, told by words of their own."""
    draw = random.Random(3)
    pairs = []
    for _ in range(num_rows):
        label = draw.randrange(4)
        own = [f"sign{label}{draw.randrange(5)}" for _ in range(3)]
        pairs.append((" ".join([*draw.sample(WORDS, 8), *own]), {"kind": "wxyz"[label]}))
    return make(*pairs)


def test_the_planted_shift_of_the_demo(run: Run, demo: Demo) -> None:
    (finding,) = run(KIND, demo("harmful_train"))
    assert (finding.code, finding.severity) == ("answers-shifted", Severity.ERROR)
    # generate.py gives row n the answer of row n + 7: the fitting answer stands 7 rows above.
    assert "in all rows the answers stand 7 rows above their inputs" in finding.message
    assert "down by 7 rows" in finding.remedy
    assert finding.example_ids[0] == "tickets-harmful-0001"


@pytest.mark.parametrize("shift", [1, -1, 4, 10, -10])
def test_shifts_of_extracted_values(run: Run, make: Make, shift: int) -> None:
    (finding,) = run(KIND, rotate(extraction(make, 120, WORDS, " "), shift))
    unit = "row" if abs(shift) == 1 else "rows"
    assert f"stand {abs(shift)} {unit} {'above' if shift > 0 else 'below'} their inputs" in finding.message


def test_shifts_of_chinese_text(run: Run, make: Make) -> None:
    examples = extraction(make, 120, CHARACTERS, "")
    assert run(KIND, examples) == ()
    (finding,) = run(KIND, rotate(examples, 2))
    assert "2 rows above" in finding.message


@pytest.mark.parametrize("shift", [3, -6])
def test_shifts_of_labels_that_no_input_names(run: Run, make: Make, shift: int) -> None:
    examples = labelling(make, 400)
    assert run(KIND, examples) == ()
    (finding,) = run(KIND, rotate(examples, shift))
    assert f"{abs(shift)} rows {'above' if shift > 0 else 'below'}" in finding.message
    assert "labels" in finding.message


def test_a_shift_that_begins_in_the_middle(run: Run, make: Make) -> None:
    examples = extraction(make, 2500, WORDS, " ")
    (finding,) = run(KIND, [*examples[:1500], *rotate(examples[1500:], 1)])
    assert "in rows 1501 to 2500 the answers stand 1 row above" in finding.message
    assert finding.example_ids[0] == "e1500"


def test_a_shuffled_stretch(run: Run, make: Make) -> None:
    examples = extraction(make, 1500, WORDS, " ")
    answers = [example.answer or "" for example in examples[500:1000]]
    random.Random(1).shuffle(answers)
    shuffled = [
        example.with_answer(answer) for example, answer in zip(examples[500:1000], answers, strict=True)
    ]
    (finding,) = run(KIND, [*examples[:500], *shuffled, *examples[1000:]])
    assert (finding.code, finding.severity) == ("answers-unrelated", Severity.WARNING)
    assert "rows 501 to 1000" in finding.message


def test_all_shuffled(run: Run, make: Make) -> None:
    examples = labelling(make, 400)
    answers = [example.answer or "" for example in examples]
    random.Random(1).shuffle(answers)
    shuffled = [example.with_answer(answer) for example, answer in zip(examples, answers, strict=True)]
    assert [item.code for item in run(KIND, shuffled)] == ["no-relation-measured"]


def test_repeated_inputs_and_growing_conversations_are_no_shift(run: Run, make: Make) -> None:
    # Each question with its answer comes back in the next row's input, as when logs are unrolled.
    pairs, history = [], ""
    for number in range(300):
        if number % 3 == 0:
            history = ""
        words = random.Random(number).sample(WORDS, 6)
        history += " ".join(words)
        answer = " ".join(words[:2]) + f" reply{number}"
        pairs.append((history, answer))
        history += f" {answer} "
    assert run(KIND, make(*pairs)) == ()


def test_general_data_is_a_stream_of_its_own(run: Run, make: Make) -> None:
    task = rotate(extraction(make, 120, WORDS, " "), 1)
    general = make(*[(f"what is {word}", f"{word} is a thing") for word in WORDS[:120]], is_general=True)
    mixed = [example for pair in zip(task, general, strict=True) for example in pair]
    (finding,) = run(KIND, mixed)
    assert "1 row above" in finding.message and finding.where == ""


def test_few_rows_say_nothing(run: Run, make: Make) -> None:
    assert run(KIND, rotate(extraction(make, 40, WORDS, " "), 1)) == ()
