# ruff: noqa: RUF001 (full-width marks are what is tested)
import pytest

from registry.artifacts.findings import Severity
from tests.training.engine.data.checks.conftest import Make, Run
from training.engine.data.checks.template_tokens import KIND, find_special_tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("done<|im_end|>", ["<|im_end|>"]),
        ("<|start_header_id|>user", ["<|start_header_id|>"]),
        ("ok<|endoftext|>", ["<|endoftext|>"]),
        ("<s>[INST] hi [/INST]", ["[INST]", "[/INST]", "<s>"]),
        ("<<SYS>>x<</SYS>>", ["<<SYS>>", "<</SYS>>"]),
        ("bye</s>", ["</s>"]),
        ("### Response:\nyes", ["### Response:"]),
        ("<think>hm</think>yes", ["<think>", "</think>"]),
        ("<start_of_turn>user", ["<start_of_turn>"]),
        ("[gMASK]<sop>", ["[gMASK]", "<sop>"]),
        ("<｜end▁of▁sentence｜>", ["<｜end▁of▁sentence｜>"]),
        ("a <s>struck</s> word in HTML", []),
        ("a < b | c > d, f<|x|", []),
        ("### Results\n[1] <b>", []),
    ],
)
def test_tokens(text: str, tokens: list[str]) -> None:
    assert find_special_tokens(text) == tokens


def test_findings_name_token_and_place(run: Run, make: Make) -> None:
    found = run(KIND, make(("hi<|im_end|>", "ok<|im_end|>"), ("hi", "ok<|im_end|>"), ("hi", "ok")))
    assert [(item.code, item.severity, item.where, item.num_examples) for item in found] == [
        ("template-token", Severity.ERROR, "answer", 2),
        ("template-token", Severity.ERROR, "user message", 1),
    ]
    assert "<|im_end|> in 2 examples (answer)" in found[0].message
    assert found[0].example_ids == ("e0", "e1")


def test_turns_written_as_text(run: Run, make: Make) -> None:
    (finding,) = run(KIND, make(("hi", "Fine.\nHuman: and then?")))
    assert (finding.code, finding.severity) == ("turn-marker", Severity.ERROR)


def test_role_words_count_in_pairs(run: Run, make: Make) -> None:
    found = run(KIND, make(("用户：你好\n助手：您好", "ok"), ("hi", "User: hi\nBot: hello")))
    assert {(item.code, item.severity, item.where) for item in found} == {
        ("role-words", Severity.WARNING, "user message"),
        ("role-words", Severity.WARNING, "answer"),
    }
    form = "System: Windows 11\nUser: anna\nQuestion: how do I log in?"
    assert run(KIND, make((form, "Ask the help desk."), ("hi", "The assistant: a play in one act."))) == ()


def test_words_of_some_vocabularies_only_warn(run: Run, make: Make) -> None:
    found = run(KIND, make(("Fill in the [MASK].", "cat")))
    assert [(item.code, item.severity) for item in found] == [("special-token", Severity.WARNING)]
