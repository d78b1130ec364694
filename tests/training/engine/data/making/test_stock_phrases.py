# ruff: noqa: RUF001 (full-width characters are what is tested)
import pytest

from training.engine.data.making.stock_phrases import (
    closing_can_go,
    find_first_part,
    find_last_part,
    is_known_closing,
    is_known_opening,
    opening_can_go,
)


@pytest.mark.parametrize(
    ("text", "phrase", "rest"),
    [
        ("Sure! The invoice was paid.", "sure", "The invoice was paid."),
        ("Sure, the invoice was paid.", "sure", "The invoice was paid."),
        ("Thank you for writing. We paid it.", "thank you for writing", "We paid it."),
        ("好的，发票已经开具。", "好的", "发票已经开具。"),
        ("以下是摘要：客户要求退款。", "以下是摘要", "客户要求退款。"),
        ("**Sure!!**\n\nWe paid it.", "sure", None),
        ("Here is the summary:\npip is broken", "here is the summary", "pip is broken"),
        ("It\u2019s done.\nWe paid.", "it's done", "We paid."),
    ],
)
def test_first_parts(text: str, phrase: str, rest: str | None) -> None:
    part = find_first_part(text)
    if rest is None:  # an emphasis that opens before and closes after the sentence's end would be torn
        assert part is None
        return
    assert part is not None
    assert (part.phrase, part.rest) == (phrase, rest)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Sure",
        "Sure!",
        "3.5 is right",
        "One clause, another one",
        "x" * 130 + ". Rest",
        "... Rest",
        "1. First\n2. Second",
    ],
)
def test_no_first_part(text: str) -> None:
    assert find_first_part(text) is None


@pytest.mark.parametrize(
    ("text", "phrase", "rest"),
    [
        ("We paid it. I hope this helps!", "i hope this helps", "We paid it."),
        (
            "We paid it.\n\nLet me know if you need more \U0001f60a",
            "let me know if you need more",
            "We paid it.",
        ),
        ("发票已开具。希望对您有帮助！", "希望对您有帮助", "发票已开具。"),
    ],
)
def test_last_parts(text: str, phrase: str, rest: str) -> None:
    part = find_last_part(text)
    assert part is not None
    assert (part.phrase, part.rest) == (phrase, rest)
    assert is_known_closing(part)
    assert closing_can_go(part) == (len(rest.split()) >= 3 or len(rest) > 6)


@pytest.mark.parametrize(
    "text", ["", "One sentence.", "```\na = 1\nreturn a\n```", "See (one. two)", "Rest. " + "x" * 130]
)
def test_no_last_part(text: str) -> None:
    assert find_last_part(text) is None


@pytest.mark.parametrize(
    ("text", "is_known", "can_go"),
    [
        ("Sure, we paid the invoice.", True, True),
        ("Sure, but we did not pay it.", True, False),  # leans on what was said
        ("Of course! it was paid today", True, False),
        ("Sure! Done.", True, False),  # too short to stand alone
        ("好的，但是发票没有开具。", True, False),
        ("好的，发票已经开具。", True, True),
        ("Here are the steps: open it, close it.", True, True),
        ("Here is your invoice. Please pay it soon.", False, True),  # no colon: that is content
        ("The invoice: it was paid.", False, None),
    ],
)
def test_openings(text: str, is_known: bool, can_go: bool | None) -> None:
    part = find_first_part(text)
    if can_go is None:
        assert part is None
        return
    assert part is not None
    assert (is_known_opening(part), opening_can_go(part)) == (is_known, can_go)


def test_what_a_colon_announced_stays() -> None:
    part = find_last_part("The result of it all:\nFeel free to call.")
    assert part is not None
    assert not closing_can_go(part)


def test_structure_is_marked() -> None:
    heading = find_first_part("# The summary\nWe paid it.")
    step = find_first_part("Step 1.\nWe paid it.")
    assert heading is not None and heading.is_structure
    assert step is not None and step.is_structure
