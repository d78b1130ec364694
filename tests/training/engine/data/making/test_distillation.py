import pytest

from tests.training.engine.data.making.scripted import ScriptedGenerator, by_instruction
from training.engine.data.examples import ChatMessage, Example
from training.engine.data.making.distillation import build_teacher_prompt, distil, plan_sources
from training.engine.data.making.distillation_settings import DistillationSettings
from training.engine.data.making.generator import Generated, Prompt, Teacher, digest_prompt
from training.engine.errors import ConfigInvalid

SCHEMA = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
    "required": ["x", "y"],
}
STRUCTURED = DistillationSettings(answer_format="json", output_schema=SCHEMA)
TEXT = DistillationSettings()


def ask(
    text: str = "How much?", *, answer: str | None = None, example_id: str = "1", **fields: object
) -> Example:
    messages = [ChatMessage("system", "Be brief."), ChatMessage("user", text)]
    messages += [] if answer is None else [ChatMessage("assistant", answer)]
    return Example(example_id=example_id, messages=tuple(messages), fields=fields)


def teach(answers: dict[str, str | Generated], name: str = "t") -> Teacher:
    generator = ScriptedGenerator(by_instruction(answers), name=f"model-{name}")
    return Teacher(generator=generator, name=name, instruction_variants=tuple(answers))


def test_structured_answers_are_ranked_by_field_agreement() -> None:
    teacher = teach(
        {
            "one": '{"y": 2, "x": 1}',
            "two": '```json\n{"y": 3, "x": 1}\n```',
            "three": '{"x": 1, "y": 3.0}',
        }
    )
    (item,) = distil([ask()], teachers=[teacher], settings=STRUCTURED)
    # By hand: 1 agrees with 2 and 3 in x alone, 1/2; 2 and 3 agree in both. Means 1/2, 3/4, 3/4.
    assert [(ranked.candidate.number, ranked.agreement) for ranked in item.ranked] == [
        (2, 0.75), (3, 0.75), (1, 0.5),
    ]  # fmt: skip
    assert item.example is not None
    assert item.example.answer == '{"x":1,"y":3}'
    assert item.reasons == ()


def test_the_example_and_where_it_is_from() -> None:
    answers = {"Answer. Be brief.": "Ten euros.", "Say it.": "Ten euros.", "Tell.": "Ten euros or so."}
    generator = ScriptedGenerator(by_instruction(answers), name="model-t")
    variants = ("Answer. {system}", "Say it.", "Tell.")
    teacher = Teacher(generator=generator, name="t", instruction_variants=variants)
    source = ask(
        answer="5",
        tags={"channel": "mail"},
        confirmed_by="ann",
        reference_source="person",
        origin={"kind": "file", "file": "a.csv", "row": 7},
        group="g",
    )
    (item,) = distil([source], teachers=[teacher], settings=TEXT)
    assert item.example is not None
    prompt = (ChatMessage("system", "Answer. Be brief."), ChatMessage("user", "How much?"))
    # Candidates 1 and 2 are equal: 1. Candidate 3 has other shingles ("ten euros" | "ten euros or", "euros or
    # so") and 2 of 4 terms in common: 1/4. The first one's mean is (1 + 1/4) / 2.
    assert item.example.to_json() == {
        "id": "1",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "How much?"},
            {"role": "assistant", "content": "Ten euros."},
        ],
        "tags": {"channel": "mail"},
        "reference_source": "model",
        "origin": {
            "kind": "distilled",
            "file": "a.csv",
            "row": 7,
            "teacher": "t",
            "generator": {"model": "model-t"},
            "candidate": 1,
            "variant": 1,
            "agreement": 0.625,
            "prompt_sha256": digest_prompt(prompt),
        },
        "group": "g",
    }


def test_the_answer_is_not_shown_to_the_teacher() -> None:
    teacher = teach({"a": "x", "b": "x", "c": "x"})
    list(distil([ask(answer="secret")], teachers=[teacher], settings=TEXT))
    assert isinstance(teacher.generator, ScriptedGenerator)
    (call,) = teacher.generator.calls
    assert all("secret" not in message.content for prompt in call for message in prompt)


def test_prompt_of_a_teacher() -> None:
    rules = STRUCTURED.answer_rules()
    prompt = build_teacher_prompt(ask(), "Obey {schema}", rules)
    assert prompt[0].content.startswith('Obey {"type":"object"')
    assert [message.role for message in build_teacher_prompt(ask(), " ", rules)] == ["user"]


def test_inputs_without_an_acceptable_candidate_are_given_back_with_reasons() -> None:
    teacher = teach({"one": "x", "two": '{"x": 1}', "three": Generated('{"x": 1, "y"', is_complete=False)})
    (item,) = distil([ask()], teachers=[teacher], settings=STRUCTURED)
    assert (item.example, item.reasons) == (None, ("no-acceptable-candidate",))
    assert [(entry.candidate.number, entry.reasons) for entry in item.rejected] == [
        (1, ("not-json",)), (2, ("schema-invalid",)), (3, ("unfinished", "not-json")),
    ]  # fmt: skip


def test_one_acceptable_candidate_is_alone() -> None:
    teacher = teach({"one": "x", "two": '{"x": 1, "y": 2}', "three": "y"})
    (item,) = distil([ask()], teachers=[teacher], settings=STRUCTURED)
    assert item.example is not None
    assert (item.example.origin["candidate"], item.example.origin["agreement"]) == (2, None)
    strict = DistillationSettings(answer_format="json", min_agreement=0.1)
    (item,) = distil([ask()], teachers=[teacher], settings=strict)
    assert (item.example, item.reasons) == (None, ("low-agreement",))


def test_inputs_that_cannot_be_asked_are_not_asked() -> None:
    teacher = teach({"a": "x", "b": "x", "c": "x"})
    odd = Example(example_id="2", messages=(ChatMessage("system", "s"),))
    inputs = [ask(" "), odd, ask(example_id="3")]
    items = list(distil(inputs, teachers=[teacher], settings=TEXT))
    assert [item.reasons for item in items] == [
        ("last-turn-not-the-users",), ("last-turn-not-the-users",), (),
    ]  # fmt: skip
    assert [item.source for item in items] == inputs
    assert isinstance(teacher.generator, ScriptedGenerator)
    assert len(teacher.generator.calls[0]) == 3


def test_each_teacher_is_called_once_a_round() -> None:
    teachers = [teach({"a": "x", "b": "x"}, "t"), teach({"a": "x"}, "u")]
    settings = DistillationSettings(num_inputs_per_round=2)
    inputs = [ask(example_id=str(number)) for number in range(3)]
    items = list(distil(inputs, teachers=teachers, settings=settings))
    assert [item.source.example_id for item in items] == ["0", "1", "2"]
    calls = [t.generator.calls for t in teachers if isinstance(t.generator, ScriptedGenerator)]
    assert [[len(call) for call in own] for own in calls] == [[4, 2], [2, 1]]


def test_the_judge_turns_the_order() -> None:
    teacher = teach({"one": "a b c d", "two": "a b c e", "three": "z"})

    def longer_is_worse(prompt: Prompt) -> str:
        lines = prompt[1].content.splitlines()
        first = lines[lines.index("[Answer A]") + 1]
        second = lines[lines.index("[Answer B]") + 1]
        return "A" if len(first) < len(second) else "B" if len(second) < len(first) else "TIE"

    judge = ScriptedGenerator(longer_is_worse, name="judge")
    settings = DistillationSettings(judge_weight=0.8)
    (item,) = distil([ask()], teachers=[teacher], settings=settings, judge=judge)
    # Overlaps 7/15 (see test_ranking), 0, 0: means 0.2333, 0.2333, 0. The judge: z wins both pairs (1), the
    # others tie once and lose once (0.25). Scores 0.2 * 0.2333 + 0.8 * 0.25 = 0.2467 twice, and 0.8.
    assert [(ranked.candidate.number, ranked.score) for ranked in item.ranked] == [
        (3, 0.8), (1, 0.2467), (2, 0.2467),
    ]  # fmt: skip
    assert item.example is not None
    assert (item.example.origin["agreement"], item.example.origin["judge_score"]) == (0.0, 1.0)
    assert item.judged is not None
    assert item.judged.num_decided == 2
    (item,) = distil([ask()], teachers=[teacher], settings=settings)
    assert item.ranked[0].candidate.number == 1


def test_json_answers_need_no_judge() -> None:
    judge = ScriptedGenerator(lambda prompt: "A")
    teacher = teach({"one": '{"x": 1, "y": 2}', "two": '{"x": 1, "y": 3}', "three": '{"x": 1, "y": 2}'})
    (item,) = distil([ask()], teachers=[teacher], settings=STRUCTURED, judge=judge)
    assert (judge.calls, item.judged) == ([], None)


def test_sources_go_round_the_teachers() -> None:
    teachers = [teach({"a": "", "b": "", "c": ""}, "t"), teach({"a": ""}, "u")]
    sources = plan_sources(teachers, 3)
    assert [(source.number, source.teacher.name, source.instruction) for source in sources] == [
        (1, "t", "a"), (2, "u", "a"), (3, "t", "b"),
    ]  # fmt: skip


def test_all_faults_of_sources_at_once() -> None:
    same = ScriptedGenerator(str, name="same")
    teachers = [
        Teacher(generator=same, name="t", instruction_variants=("a",)),
        Teacher(generator=same, name="t", instruction_variants=("a",)),
    ]
    with pytest.raises(ConfigInvalid) as caught:
        plan_sources(teachers, 3)
    assert [fault.code for fault in caught.value.faults] == [
        "duplicate-teacher", "source-twice", "too-few-sources",
    ]  # fmt: skip
    with pytest.raises(ConfigInvalid, match="0 pairs of teacher and instruction for 1"):
        plan_sources([], 1)
