# ruff: noqa: RUF001 (full-width marks are what is tested)
import json
from collections.abc import Sequence

import pytest

from training.engine.data.cleaning.sensitive.model_pass import (
    NOT_QUOTED,
    UNANSWERED,
    ModelPass,
    ModelPassSettings,
    make_prompt,
    parse_reply,
)
from training.engine.data.cleaning.sensitive.settings import ScreenSettings
from training.engine.data.examples import ChatMessage, Example


class Scripted:
    """Gives the replies of a script by the text that is asked about."""

    def __init__(self, replies: dict[str, str]) -> None:
        self.replies = replies
        self.asked: list[list[str]] = []

    def generate(self, prompts: Sequence[tuple[ChatMessage, ...]], *, max_tokens: int) -> list[str]:
        texts = [prompt[-1].content for prompt in prompts]
        self.asked.append(texts)
        return [self.replies.get(text, "[]") for text in texts]


def make(user: str, answer: str = "ok", system: str = "Be brief.") -> Example:
    messages = (ChatMessage("system", system), ChatMessage("user", user), ChatMessage("assistant", answer))
    return Example(example_id="e", messages=messages)


def quote(*items: tuple[str, str]) -> str:
    return json.dumps([{"text": text, "kind": kind} for text, kind in items], ensure_ascii=False)


def test_findings_of_model_and_rules_are_merged() -> None:
    generator = Scripted({"王芳，电话13912345678": quote(("王芳", "person-name"))})
    model_pass = ModelPass(generator, ScreenSettings())
    screened = list(model_pass.run([make("王芳，电话13912345678", '{"who": "王芳"}'), make("hello")]))
    outcomes = [item.outcome for item in screened]
    assert screened[0].masked.input_text == "[NAME_1]，电话[PHONE_1]"
    first, second = (outcome.example for outcome in outcomes)
    assert first is not None and first.input_text == "[NAME_1]，电话[PHONE_1]"
    assert first.answer == '{"who": "[NAME_1]"}'
    assert second is not None and outcomes[1].reasons == ()
    assert generator.asked == [["王芳，电话13912345678", '{"who": "王芳"}', "hello", "ok"]]
    assert model_pass.facts() == {
        "num_asked": 4,
        "num_with_findings": 1,
        "num_without_findings": 3,
        "num_unanswered": 0,
        "num_refused": 0,
        "num_found": {"person-name": 1},
    }


@pytest.mark.parametrize(
    "reply",
    ["", "None found.", "```json\n[]\n```", '{"text":"a","kind":"email"}', '[{"text":"hello"}]', "[1]", "[["],
)
def test_an_unusable_reply_is_never_clean(reply: str) -> None:
    assert parse_reply(reply) is None
    model_pass = ModelPass(Scripted({"hello": reply}), ScreenSettings())
    outcome = next(iter(model_pass.run([make("hello")]))).outcome
    assert outcome.example == make("hello") and outcome.reasons == (UNANSWERED,)
    assert model_pass.facts()["num_unanswered"] == 1


def test_rules_still_count_when_the_model_is_silent() -> None:
    model_pass = ModelPass(Scripted({"a@firm.cn": "?"}), ScreenSettings())
    outcome = next(iter(model_pass.run([make("a@firm.cn")]))).outcome
    assert outcome.example is not None and outcome.example.input_text == "[EMAIL_1]"
    assert outcome.reasons == ("email-redacted", UNANSWERED)


@pytest.mark.parametrize(
    "item", [("Anna", "person-name"), ("hello", "colour"), ("h", "person-name"), ("!!", "health")]
)
def test_quotations_that_are_refused(item: tuple[str, str]) -> None:
    model_pass = ModelPass(Scripted({"hello you!!": quote(item)}), ScreenSettings())
    outcome = next(iter(model_pass.run([make("hello you!!")]))).outcome
    assert outcome.example == make("hello you!!") and outcome.reasons == (NOT_QUOTED,)
    assert model_pass.facts()["num_refused"] == 1


def test_a_reply_that_quotes_everything_is_unanswered() -> None:
    text = " ".join(f"word{i}" for i in range(60))
    reply = quote(*((f"word{i}", "person-name") for i in range(60)))
    outcome = next(iter(ModelPass(Scripted({text: reply}), ScreenSettings()).run([make(text)]))).outcome
    assert outcome.reasons == (UNANSWERED,)


def test_actions_hold_for_the_kinds_of_the_model() -> None:
    generator = Scripted({"Ann Lee is here": quote(("Ann Lee", "person-name"))})
    dropping = ModelPass(generator, ScreenSettings(actions={"person-name": "drop"}))
    assert next(iter(dropping.run([make("Ann Lee is here")]))).outcome.reasons == ("person-name-dropped",)


def test_long_messages_are_asked_in_overlapping_parts() -> None:
    generator = Scripted({})
    settings = ModelPassSettings(max_characters=10, overlap_characters=4)
    list(ModelPass(generator, ScreenSettings(), settings).run([make("0123456789abcdefgh", "")]))
    # By hand: steps of 6; the third part ends with the text.
    assert generator.asked == [["0123456789", "6789abcdef", "cdefgh"]]


def test_batches_and_wrong_numbers_of_replies() -> None:
    generator = Scripted({})
    model_pass = ModelPass(generator, ScreenSettings(), ModelPassSettings(batch_size=2))
    assert len(list(model_pass.run(make(f"text {i}") for i in range(5)))) == 5
    assert [len(texts) for texts in generator.asked] == [4, 4, 2]

    class Short:
        def generate(self, prompts: Sequence[tuple[ChatMessage, ...]], *, max_tokens: int) -> list[str]:
            return []

    with pytest.raises(ValueError, match="replies"):
        list(ModelPass(Short(), ScreenSettings()).run([make("a")]))


def test_settings_are_checked() -> None:
    with pytest.raises(ValueError, match="overlap"):
        ModelPassSettings(max_characters=10, overlap_characters=10)
    with pytest.raises(ValueError, match="batch_size"):
        ModelPassSettings(batch_size=0)


def test_the_prompt_names_the_kinds_and_holds_the_text() -> None:
    system, user = make_prompt("hello")
    assert (system.role, user.role, user.content) == ("system", "user", "hello")
    assert "person-name" in system.content and "JSON list" in system.content
