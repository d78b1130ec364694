import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.training.engine.data.making.scripted import ScriptedGenerator
from tests.training.engine.data.making.sets import load
from training.engine.data.making.composing import ComposedText
from training.engine.data.making.generator import Generated, Prompt
from training.engine.data.making.paraphrase import ForeignWords, find_refusal, paraphrase_texts
from training.engine.data.making.template_settings import TemplateSettings
from training.engine.data.making.templates import make_from_templates
from training.engine.data.making.wordings import count_phrase
from training.engine.data.shingles import jaccard, make_shingles, normalise

TICKETS = load("tickets")
FOREIGN = ForeignWords.of(TICKETS)
SETTINGS = TemplateSettings()
LABELS = {"problem": '"login"', "module": '"web"', "urgency": '"normal"', "wants_call": "false"}


def composed(text: str, *kept: str) -> ComposedText:
    return ComposedText(
        template_id="plain", text=text, kept=dict.fromkeys(kept, 1), labels=LABELS, answer="{}"
    )


ORIGINAL = composed("Hello, I cannot log in to the web portal. Cheers, Lotte", "log in", "the web portal")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Since today I am not able to log in to the web portal, Lotte here.", ""),
        ("", "empty"),
        ("Log in to the web portal fails for me.<|im_end|>", "template-residue"),
        ("I'm sorry, but I can't help with that.", "refusal"),
        ("Since today I am not able to enter the web portal, Lotte here.", "slot-value-lost"),
        ("Since today I am not able to Log In to the web portal, Lotte here.", "slot-value-lost"),
        ("I am not able to log in to the web portal, and it is Urgent.", "foreign-label-word"),
        ("log in: the web portal", "too-short"),
        ("log in to the web portal " * 6, "too-long"),
        ("hello I cannot log in to the web portal! Cheers Lotte.", "too-similar"),
    ],
)
def test_the_first_reason_to_refuse(text: str, reason: str) -> None:
    assert find_refusal(ORIGINAL, Generated(text), foreign=FOREIGN, settings=SETTINGS) == reason


def test_a_foreign_word_that_stood_there_before_is_none() -> None:
    original = composed("I cannot log in, no urgent matter, to the web portal.", "log in", "the web portal")
    text = "It is not urgent, but I do not get to log in on the web portal."
    assert find_refusal(original, Generated(text), foreign=FOREIGN, settings=SETTINGS) == ""


def test_cut_rewordings_are_refused() -> None:
    text = "Since today I am not able to log in to the web portal, Lotte"
    proposal = Generated(text, is_complete=False)
    assert find_refusal(ORIGINAL, proposal, foreign=FOREIGN, settings=SETTINGS) == "unfinished"


def rewrite(
    texts: list[ComposedText], *answers: str
) -> tuple[dict[int, str], dict[str, int], ScriptedGenerator]:
    left = iter(answers)
    generator = ScriptedGenerator(lambda prompt: next(left))
    accepted, report = paraphrase_texts(
        texts, range(len(texts)), template_set=TICKETS, settings=SETTINGS, generator=generator
    )
    assert report.num_asked == report.num_accepted + sum(report.refusals.values())
    return {place: text.text for place, text in accepted.items()}, dict(report.refusals), generator


def test_wrapping_is_taken_off() -> None:
    good = "Since today I am not able to log in to the web portal, Lotte here."
    accepted, _, generator = rewrite([ORIGINAL], f'Sure, here is the new message:\n\n"{good}"')
    assert accepted == {0: good}
    assert rewrite([ORIGINAL], f"Okay, {good}")[0] == {0: f"Okay, {good}"}
    ((prompt,),) = generator.calls
    assert '"log in", "the web portal"' in prompt[0].content
    assert prompt[1].content == ORIGINAL.text


def test_rewordings_that_are_alike_are_refused() -> None:
    other = composed("Good day, the log in of the web portal never works, Ben", "log in", "the web portal")
    good = "Since today I am not able to log in to the web portal, Lotte here."
    assert rewrite([ORIGINAL, other], good, good)[:2] == ({0: good}, {"near-duplicate": 1})
    # The second becomes the first one's original: also refused, whatever became of the first.
    assert rewrite([ORIGINAL, other], good, ORIGINAL.text)[:2] == ({0: good}, {"near-duplicate": 1})


STATED = {
    "log in": ("problem", "login"),
    "locked": ("problem", "login"),
    "crashes": ("problem", "crash"),
    "charged twice": ("problem", "billing"),
    "invoice": ("problem", "billing"),
    "urgent": ("urgency", "high"),
    "web portal": ("module", "web"),
    "mobile app": ("module", "mobile"),
}
WORDS = [
    "log in",
    "the web portal",
    "charged twice",
    "urgent",
    "kindly",
    "since noon",
    "Lotte",
    "please",
    "now",
]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 50), st.lists(st.integers(0, 10_000), min_size=1, max_size=4))
def test_whatever_the_model_says_no_slot_value_is_lost(seed: int, choices: list[int]) -> None:
    """The model keeps, drops, repeats and turns words at random."""

    def reword(prompt: Prompt) -> str:
        words = prompt[1].content.split()
        number = choices[len(words) % len(choices)]
        if number % 3 == 0:
            words = words[number % len(words) :] + words[: number % len(words)]
        elif number % 3 == 1:
            del words[number % len(words)]
        return " ".join([*words, WORDS[number % len(WORDS)], WORDS[(number // 7) % len(WORDS)]])

    configured = TemplateSettings(num_examples=12, seed=seed)
    plain = make_from_templates(TICKETS, configured)
    result = make_from_templates(TICKETS, configured, paraphraser=ScriptedGenerator(reword))
    paraphrase = result.report.paraphrase
    assert paraphrase is not None
    assert paraphrase.num_asked == paraphrase.num_accepted + sum(paraphrase.refusals.values())
    reworded = [example for example in result.examples if "paraphrased_by" in example.origin]
    assert len(reworded) == paraphrase.num_accepted
    for before, after in zip(plain.examples, result.examples, strict=True):
        assert before.answer == after.answer
        if before.input_text == after.input_text:
            assert before == after
        labels = json.loads(after.answer or "")
        for text, (name, value) in STATED.items():
            assert count_phrase(after.input_text, text) or not count_phrase(before.input_text, text)
            assert not count_phrase(after.input_text, text) or labels[name] == value
    sets = [make_shingles(normalise(example.input_text)) for example in result.examples]
    assert all(jaccard(a, b) < 0.85 for i, a in enumerate(sets) for b in sets[:i])
