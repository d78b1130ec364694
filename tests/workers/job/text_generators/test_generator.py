from dataclasses import replace

import pytest

from evaluation.engine.backends.base import BackendConfig
from evaluation.engine.backends.transformers import TransformersBackend
from evaluation.engine.prompts import build_chat_format
from tests.fixtures.models import random_llama
from tests.workers.job.text_generators.scripted import FINGERPRINT, ScriptedBackend
from training.engine.data.cleaning.sensitive.model_pass import UNANSWERED, ModelPass
from training.engine.data.cleaning.sensitive.settings import ScreenSettings
from training.engine.data.examples import ChatMessage, Example
from training.engine.data.making.acceptance import AnswerRules, check_answer
from training.engine.data.making.generator import Generated, Prompt, generate_texts
from workers.job.text_generators.generator import (
    TEMPLATE_REFUSED,
    TOO_LONG,
    BackendGenerator,
    ReplyGenerator,
)
from workers.job.text_generators.local_model import LocalModel, open_model

CONFIG = BackendConfig(name="transformers", dtype="float32", max_model_len=64, max_num_seqs=2)
END = ScriptedBackend.END


@pytest.fixture(scope="module")
def model() -> LocalModel:
    return open_model(random_llama())


def ignore(fraction: float, message: str) -> None:
    del fraction, message


def ask(text: str, system: str = "Be brief.") -> Prompt:
    return ChatMessage("system", system), ChatMessage("user", text)


def scripted(model: LocalModel, answers: dict[str, str]) -> tuple[BackendGenerator, ScriptedBackend]:
    def answer(prompt: str) -> str:
        return next(reply for asked, reply in answers.items() if f"user\n{asked}<" in prompt)

    backend = ScriptedBackend(model.chat.tokenizer, answer)
    return BackendGenerator(model, backend, CONFIG, ignore), backend


def test_a_real_backend_answers_greedily_in_the_order_of_the_prompts(model: LocalModel) -> None:
    backend = TransformersBackend(model.folder, None, CONFIG)
    generator = BackendGenerator(model, backend, CONFIG, ignore)
    prompts = [ask("one two three four"), ask("five"), ask("six " * 100), ask("seven eight")]
    outputs = generate_texts(generator, prompts, max_tokens=5)
    singles = [generator.generate([prompt], max_tokens=5)[0] for prompt in prompts]
    assert outputs == singles
    assert [output.fault for output in outputs] == ["", "", TOO_LONG, ""]
    assert generator.identity == {
        "model": model.name,
        "digest": model.digest,
        "backend": "transformers",
        "engine": backend.fingerprint()["digest"],
    }
    facts = generator.facts()
    assert (facts["num_prompts"], facts["not_asked"]) == (8, {TOO_LONG: 2})
    assert facts["fingerprint"]["dtype"] == "float32"
    assert facts["num_output_tokens"] == facts["num_cut"] * 5 == 30  # a random model never stops


def test_limits_and_stop_tokens_are_stated_and_the_template_is_the_models(model: LocalModel) -> None:
    generator, backend = scripted(model, {"hello": f"Hi.{END}"})
    assert generator.generate([ask("hello")], max_tokens=7) == [Generated("Hi.")]
    ((request,),) = backend.calls
    assert (request.max_tokens, request.stop_token_ids) == (7, model.chat.stop_token_ids)
    text = model.chat.tokenizer.decode(list(request.prompt_token_ids))
    assert text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n"
    )


def test_left_over_template_is_seen_and_a_cut_answer_is_not_complete(model: LocalModel) -> None:
    generator, _ = scripted(model, {"a": f"Yes.<|im_start|>user\nmore{END}", "b": "and so on"})
    left_over, cut = generator.generate([ask("a"), ask("b")], max_tokens=20)
    assert left_over == Generated("Yes.<|im_start|>user\nmore")
    assert check_answer(left_over, AnswerRules()).reasons == ("template-residue",)
    assert cut == Generated("and so on", is_complete=False)
    assert generator.facts()["num_cut"] == 1


def test_a_prompt_that_just_fits_is_asked(model: LocalModel) -> None:
    generator, backend = scripted(model, {"hello": END})
    room = CONFIG.max_model_len - len(_rendered(model, ask("hello")))
    fits, does_not = (generator.generate([ask("hello")], max_tokens=room + more)[0] for more in (0, 1))
    assert (fits.fault, does_not.fault) == ("", TOO_LONG)
    assert len(backend.calls) == 1


def test_a_template_that_knows_no_system_message_stops_nothing(model: LocalModel) -> None:
    tokenizer = model.chat.tokenizer
    own = tokenizer.chat_template
    strict = (
        "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system here') }}{% endif %}" + own
    )
    refusing = replace(model, chat=replace(build_chat_format(tokenizer), template=strict))
    generator, backend = scripted(refusing, {"hello": f"Hi.{END}"})
    refused, answered = generator.generate([ask("hello"), ask("hello")[1:]], max_tokens=7)
    assert refused == Generated("", is_complete=False, fault=TEMPLATE_REFUSED)
    assert answered == Generated("Hi.")
    assert len(backend.calls[0]) == 1
    facts = generator.facts()
    assert facts["not_asked"] == {TEMPLATE_REFUSED: 1}
    assert "no system here" in facts["template_refusal"]


def test_no_engine_is_asked_when_nothing_can_be_asked(model: LocalModel) -> None:
    generator, backend = scripted(model, {})
    assert generator.generate([ask("long " * 100)], max_tokens=4)[0].fault == TOO_LONG
    assert generator.generate([], max_tokens=4) == []
    assert backend.calls == []
    assert generator.identity["engine"] == FINGERPRINT["digest"]


def test_replies_that_are_cut_or_missing_are_unanswered_and_never_clean(model: LocalModel) -> None:
    found = '[{"text": "Maria Gomez", "kind": "person-name"}]'
    answers = {
        "I am Maria Gomez": f"```json\n{found}\n```{END}",
        "it is slow": f"[]{END}",
        "I am Ann": "[]",  # at its limit: more might have come
    }
    backend = ScriptedBackend(
        model.chat.tokenizer, lambda prompt: next(r for asked, r in answers.items() if asked in prompt)
    )
    # Room for the screening's instruction and the 512 tokens of its replies, not for 600 words more.
    generator = BackendGenerator(model, backend, replace(CONFIG, max_model_len=1024), ignore)
    texts = [*answers, "long " * 600]
    examples = [
        Example(example_id=str(number), messages=(ChatMessage("user", text),))
        for number, text in enumerate(texts)
    ]
    screening = ModelPass(ReplyGenerator(generator), ScreenSettings())
    outcomes = [item.outcome for item in screening.run(examples)]
    assert [outcome.reasons for outcome in outcomes] == [
        ("person-name-redacted",), (), (UNANSWERED,), (UNANSWERED,),
    ]  # fmt: skip
    first = outcomes[0].example
    assert first is not None and first.input_text == "I am [NAME_1]"


def _rendered(model: LocalModel, prompt: Prompt) -> tuple[int, ...]:
    generator, backend = scripted(model, {"hello": END})
    generator.generate([prompt], max_tokens=1)
    return backend.calls[0][0].prompt_token_ids
