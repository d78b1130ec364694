import io
import json
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.training.engine.data.making.scripted import ScriptedGenerator
from training.engine.data.example_files import iterate_examples
from training.engine.data.examples import ChatMessage, Example
from training.engine.data.making.deflavouring import FlavourSettings
from training.engine.data.making.distillation_run import DistillationResult, run_distillation
from training.engine.data.making.distillation_settings import DistillationSettings
from training.engine.data.making.generator import Prompt, Teacher, TextGenerator
from training.engine.progress import SilentReporter

VARIANTS = ("1", "2", "3")


def ask(number: int, text: str = "", answer: str | None = None) -> Example:
    messages = [ChatMessage("user", text or f"input {number}")]
    messages += [] if answer is None else [ChatMessage("assistant", answer)]
    return Example(example_id=str(number), messages=tuple(messages))


def run(
    inputs: list[Example],
    generator: ScriptedGenerator,
    folder: Path,
    configured: DistillationSettings,
    judge: TextGenerator | None = None,
) -> tuple[DistillationResult, str]:
    unanswered = io.StringIO()
    result = run_distillation(
        inputs,
        teachers=[Teacher(generator=generator, name="t", instruction_variants=VARIANTS)],
        settings=configured,
        target=folder / "examples.jsonl",
        unanswered=unanswered,
        scratch=folder,
        progress=SilentReporter(),
        judge=judge,
        num_inputs=len(inputs),
    )
    return result, unanswered.getvalue()


def answer(prompt: Prompt) -> str:
    """Input 0 is refused, 1 gets one acceptable candidate, 2 three that differ, others three equal ones."""
    variant, number = prompt[0].content, int(prompt[1].content.removeprefix("input "))
    if number == 0 or (number == 1 and variant != "2"):
        return "I'm sorry, but I can't help with that."
    if number == 2:
        return f"Sure! It is about {variant} {variant} {variant} of them."
    return f"Sure! The amount is {number} euros."


def test_files_and_report(tmp_path: Path) -> None:
    configured = DistillationSettings(num_lowest_for_people=2, num_control_for_people=1, seed=3)
    # An empty answer, as of a log's empty cell, is none.
    inputs = [ask(number, answer="old" if number > 2 else None if number else "") for number in range(5)]
    inputs[1] = ask(1, answer=" ")
    result, unanswered = run(inputs, ScriptedGenerator(answer), tmp_path, configured)
    examples = list(iterate_examples(result.written.path))
    assert [(example.example_id, example.answer) for example in examples] == [
        ("1", "The amount is 1 euros."),
        ("2", "Sure! It is about 1 1 1 of them."),  # "It" leans on the sentence before it
        ("3", "The amount is 3 euros."),
        ("4", "The amount is 4 euros."),
    ]
    (line,) = map(json.loads, unanswered.splitlines())
    assert (line["reasons"], line["example"]["id"]) == (["no-acceptable-candidate"], "0")
    assert [candidate["reasons"] for candidate in line["candidates"]] == [["refusal"]] * 3
    report = result.report
    assert (report.num_inputs, report.num_examples, report.num_unanswered) == (5, 4, 1)
    assert report.unanswered_reasons == {"no-acceptable-candidate": 1}
    assert report.num_answers_replaced == 2
    assert report.num_alone == 1
    assert report.agreement_histogram[9] == 2
    assert sum(report.agreement_histogram) == 3
    assert report.teacher_fractions == {"t": 1.0}
    assert [
        (source.num_candidates, source.num_acceptable, source.num_chosen) for source in report.sources
    ] == [(5, 3, 3), (5, 4, 1), (5, 3, 0)]
    assert report.sources[0].rejections == {"refusal": 2}
    assert report.num_pairs == {"lowest": 2, "control": 1}
    assert [pair.example_id for pair in result.pairs[:2]] == ["1", "2"]
    assert not list(tmp_path.glob("distilled*"))
    assert json.loads(json.dumps(report.to_json())) == report.to_json()


def test_people_see_the_answers_of_the_file(tmp_path: Path) -> None:
    configured = DistillationSettings(num_lowest_for_people=9)
    result, _ = run([ask(number) for number in range(5)], ScriptedGenerator(answer), tmp_path, configured)
    answers = {example.example_id: example.answer for example in iterate_examples(result.written.path)}
    assert {pair.example_id: pair.top.text for pair in result.pairs} == answers
    assert answers["3"] == "The amount is 3 euros."
    marked = [example.origin.get("deflavoured") for example in iterate_examples(result.written.path)]
    assert marked == [True, None, True, True]
    assert result.report.flavour is not None
    assert (result.report.flavour.num_changed, result.report.flavour.num_left) == (3, 1)


def test_without_deflavouring(tmp_path: Path) -> None:
    result, _ = run([ask(3)], ScriptedGenerator(answer), tmp_path, DistillationSettings(flavour=None))
    (example,) = iterate_examples(result.written.path)
    assert example.answer == "Sure! The amount is 3 euros."
    assert result.report.flavour is None


def test_a_frequent_opening_is_found_and_taken_off(tmp_path: Path) -> None:
    generator = ScriptedGenerator(
        lambda prompt: f"Thank you for asking. The amount of {prompt[1].content} is due."
    )
    configured = DistillationSettings(flavour=FlavourSettings(min_answers=3))
    result, _ = run([ask(number) for number in range(4)], generator, tmp_path, configured)
    assert [example.answer for example in iterate_examples(result.written.path)] == [
        f"The amount of input {number} is due." for number in range(4)
    ]


def test_a_judge_that_is_the_teacher_is_named(tmp_path: Path) -> None:
    generator = ScriptedGenerator(answer)
    judge = ScriptedGenerator(lambda prompt: "A", name="scripted")
    result, _ = run([ask(2)], generator, tmp_path, DistillationSettings(), judge=judge)
    assert result.report.is_judge_a_teacher
    assert result.report.judge is not None
    assert (result.report.judge.num_pairs, result.report.judge.num_order_conflicts) == (3, 3)


def test_nothing_in_nothing_out(tmp_path: Path) -> None:
    result, unanswered = run([], ScriptedGenerator(answer), tmp_path, DistillationSettings())
    assert (result.written.num_examples, unanswered, result.pairs) == (0, "", ())
    assert result.report.mean_agreement is None


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from(["", "x y z", "a b c", "I cannot help."]), min_size=3, max_size=3),
        max_size=6,
    )
)
def test_counts_add_up_and_the_same_outputs_give_the_same_bytes(
    tmp_path: Path, outputs: list[list[str]]
) -> None:
    def reply(prompt: Prompt) -> str:
        return outputs[int(prompt[1].content.removeprefix("input "))][int(prompt[0].content) - 1]

    inputs = [ask(number) for number in range(len(outputs))]
    configured = DistillationSettings(
        num_inputs_per_round=2, num_lowest_for_people=2, num_control_for_people=1
    )
    result, unanswered = run(inputs, ScriptedGenerator(reply), tmp_path, configured)
    report = result.report
    assert report.num_examples + report.num_unanswered == report.num_inputs == len(inputs)
    assert report.num_examples == result.written.num_examples
    assert len(unanswered.splitlines()) == report.num_unanswered == sum(report.unanswered_reasons.values())
    assert sum(report.agreement_histogram) + report.num_alone == report.num_examples
    assert sum(source.num_chosen for source in report.sources) == report.num_examples
    again, unanswered_again = run(inputs, ScriptedGenerator(reply), tmp_path, configured)
    assert (again, unanswered_again) == (result, unanswered)
