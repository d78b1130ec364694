# ruff: noqa: RUF001 (full-width characters are what is tested)
import pytest

from training.engine.data.making.acceptance import AnswerRules, check_answer, has_template_residue, is_refusal
from training.engine.data.making.generator import Generated
from training.engine.data.making.structured_answers import AnswerSchema

TEXT = AnswerRules()
SCHEMA = AnswerSchema({"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]})
JSON = AnswerRules(is_json=True, schema=SCHEMA)


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ("", ("empty",)),
        (" …!\n", ("empty",)),
        ("Done.<|im_end|>", ("template-residue",)),
        ("<think>hm</think> Done.", ("template-residue",)),
        ("A half \ud83d", ("unstorable-text",)),
        ("I'm sorry, but I can't help with that.", ("refusal",)),
        ("```\ncode", ("unfinished",)),
        ("As an AI, I cannot.<|eot_id|>", ("template-residue", "refusal")),
        ("Die Rechnung ist beglichen.", ()),
        ("完成。", ()),
    ],
)
def test_free_text(text: str, reasons: tuple[str, ...]) -> None:
    assert check_answer(Generated(text), TEXT).reasons == reasons


def test_text_is_stripped_when_accepted_and_raw_when_not() -> None:
    assert check_answer(Generated(" Done. \n"), TEXT).text == "Done."
    cut = check_answer(Generated(" Don ", is_complete=False), TEXT)
    assert (cut.text, cut.reasons) == (" Don ", ("unfinished",))


@pytest.mark.parametrize(
    ("text", "reasons"),
    [
        ('{"a": 1}', ()),
        ('```json\n{"a": 1}\n```', ()),
        ("", ("empty",)),
        ('Here it is: {"a": 1}', ("not-json",)),
        ('{"a":1,"a":2}', ("not-json",)),
        ('{"a": "1"}', ("schema-invalid",)),
        ("抱歉，我无法处理这个请求。", ("refusal", "not-json")),
        ('{"a": 1, "b": "```"}', ()),
    ],
)
def test_json(text: str, reasons: tuple[str, ...]) -> None:
    assert check_answer(Generated(text), JSON).reasons == reasons


def test_json_in_its_one_form() -> None:
    answer = check_answer(Generated('{"b": [1.0], "a": 1}'), JSON)
    assert answer.text == '{"a":1,"b":[1.0]}'
    assert answer.fields == {"/a": "1", "/b/0": "1"}
    assert check_answer(Generated("[]"), AnswerRules(is_json=True)).text == "[]"


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, but I can't help with that.",
        "I\u2019m really sorry; unfortunately I am unable to say.",
        "I am afraid I cannot do that.",
        "Sorry, I can not answer this.",
        "Unfortunately, I won't be able to help.",
        "I cannot assist with this request.",
        "As an AI language model, I have no opinion.",
        "很抱歉，我无法回答这个问题。",
        "对不起，这个我不能说。",
        "作为一个AI，我没有感情。",
        "作为大语言模型，我不能。",
        "我无法提供医疗建议。",
    ],
)
def test_refusals(text: str) -> None:
    assert is_refusal(text)
    assert check_answer(Generated(text), AnswerRules(allows_refusals=True)).reasons == ()


@pytest.mark.parametrize(
    "text",
    [
        "We are sorry for the delay and have refunded the amount.",
        "I'm sorry to hear that. Please restart the app.",
        "The customer says: I cannot help with this.",
        "I cannot log in since Monday.",
        "非常抱歉给您带来不便，款项已退回。",
        "我无法登录。",
    ],
)
def test_what_is_no_refusal(text: str) -> None:
    assert not is_refusal(text)


@pytest.mark.parametrize("is_json", [False, True])
def test_an_output_that_was_never_made_has_its_fault_alone(is_json: bool) -> None:
    output = Generated("", is_complete=False, fault="prompt-too-long")
    answer = check_answer(output, AnswerRules(is_json=is_json))
    assert (answer.text, answer.reasons) == ("", ("prompt-too-long",))


def test_residue_is_not_any_angle_bracket() -> None:
    assert has_template_residue("a <|user|> b")
    assert has_template_residue("[INST] x")
    assert not has_template_residue("if a <| b |> c: <b>x</b>")
