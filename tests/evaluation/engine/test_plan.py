from pathlib import Path

import pytest

from evaluation.engine.errors import SuiteError
from evaluation.engine.plan import Plan, Subject, build_plan, continuation_requests, generation_requests
from evaluation.engine.prompts import ChatFormat, build_chat_format
from evaluation.engine.suite_folder import Suite, load_suite_folder
from tests.evaluation.engine.samples import write_lines, write_suite
from tests.fixtures.models import smollm2_tokenizer


@pytest.fixture(scope="module")
def chat() -> ChatFormat:
    return build_chat_format(smollm2_tokenizer())


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    return load_suite_folder(write_suite(tmp_path))


def first_messages(plan: Plan, role: str) -> list[str]:
    planned = next(item for item in plan.examples if item.role == role)
    return [message.content for message in planned.prompt.messages]


@pytest.mark.parametrize(
    ("subject", "task"),
    [
        ("candidate", ["Answer as JSON.", "Printer 0 is broken"]),
        (
            "baseline",
            [
                "Give JSON with type and urgency.",
                "Screen is black",
                '{"type":"bug","urgency":"high"}',
                "Printer 0 is broken",
            ],
        ),
    ],
)
def test_prompts_by_subject(suite: Suite, chat: ChatFormat, subject: Subject, task: list[str]) -> None:
    plan = build_plan(suite, chat, subject=subject, max_model_len=512)
    assert first_messages(plan, "holdout") == task
    assert first_messages(plan, "canary") == ["Answer as JSON.", "odd 0"]  # the same for both subjects
    assert first_messages(plan, "regression") == ["2 + 2?"]  # the question alone, without lettered options


def test_requests(suite: Suite, chat: ChatFormat) -> None:
    plan = build_plan(suite, chat, subject="candidate", max_model_len=512)
    generations = generation_requests(plan.examples, chat, num_logprobs=20)
    assert len(generations) == 3 + 3 + 1 + 3
    assert len({request.request_id for request in generations}) == len(generations)
    by_id = {request.request_id: request for request in generations}
    assert (by_id["holdout:0"].max_tokens, by_id["regression:1"].max_tokens) == (8, 6)
    assert (by_id["holdout:0"].num_logprobs, by_id["canary:0"].num_logprobs) == (0, 20)
    assert by_id["holdout:0"].stop_token_ids == chat.stop_token_ids
    options = continuation_requests(plan.examples)
    assert [request.request_id for request in options] == ["regression:0/0", "regression:0/1"]
    assert chat.tokenizer.decode(list(options[1].continuation_token_ids)) == "four"


def test_an_over_long_canary_is_planned_as_refused(suite: Suite, chat: ChatFormat, tmp_path: Path) -> None:
    long = {"id": "long", "messages": [{"role": "user", "content": "word " * 600}]}
    write_lines(tmp_path / "canary.jsonl", [long])
    plan = build_plan(load_suite_folder(tmp_path), chat, subject="candidate", max_model_len=512)
    (canary,) = plan.of("canary")
    assert canary.is_refused
    assert generation_requests([canary], chat) == ()


def test_any_other_example_that_does_not_fit_is_a_fault_of_the_suite(suite: Suite, chat: ChatFormat) -> None:
    with pytest.raises(SuiteError) as error:
        build_plan(suite, chat, subject="candidate", max_model_len=16)
    assert error.value.code == "prompt-too-long"
    assert len(error.value.faults) == 8  # 3 holdout, 3 OOD, 2 regression; canaries may be too long
