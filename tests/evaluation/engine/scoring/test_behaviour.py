import pytest

from evaluation.engine.scoring.behaviour import has_repetition, has_template_residue, observe_behaviour


@pytest.mark.parametrize(
    "text",
    [
        "the cat sat on " * 4,
        "no " * 12,
        '{"a": 1}, ' * 4,
        "\u8bf7\u7a0d\u7b49" * 4,  # three CJK characters, four times
        '{"a":' + "\n" * 40,
        "A good start. " + "and then the same words again " * 5,
    ],
)
def test_repetition(text: str) -> None:
    assert has_repetition(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "no no no no",
        "the cat sat on " * 3,
        '{"values": [0, 0, 0, 0]}',
        "Each word in this sentence differs from the one that stands before it, so nothing repeats.",
    ],
)
def test_no_repetition(text: str) -> None:
    assert not has_repetition(text)


def test_template_residue_in_special_and_in_ordinary_tokens() -> None:
    assert has_template_residue("hello<|im_start|>user", [])
    assert has_template_residue("hello <custom_end>", ["<custom_end>"])
    assert not has_template_residue("a < b and [b] > c", ["<custom_end>", ""])


@pytest.mark.parametrize(
    "text", ["Sure, here it is", "Here is the JSON:", "As an AI model", "\u597d\u7684\uff0c"]
)
def test_preamble(text: str) -> None:
    observed = observe_behaviour(raw_text=text, finish_reason="stop", special_tokens=[])
    assert observed.preamble


@pytest.mark.parametrize("text", ['{"note": "Sure, here it is"}', "Surely not", "Okayama is a city"])
def test_no_preamble(text: str) -> None:
    observed = observe_behaviour(raw_text=text, finish_reason="stop", special_tokens=[])
    assert not observed.preamble


def test_never_stopped_is_the_finish_reason() -> None:
    observed = observe_behaviour(raw_text="x", finish_reason="length", special_tokens=[])
    assert observed.to_json() == {
        "never_stopped": True,
        "template_residue": False,
        "repetition": False,
        "preamble": False,
    }
