import pytest

from training.engine.data.cleaning.normalising.amounts import unify_amounts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("¥1,234.50", "¥1234.50"),
        ("￥ 1,234", "¥1234"),
        ("$ 5 or US$1,000", "$5 or US$1000"),
        ("1234.5 元", "1234.5元"),
        ("1.2 万元", "1.2万元"),
        ("12,000人", "12000人"),
        ("RMB 1,000 and USD1,000.00", "RMB 1000 and USD1000.00"),
        ("about 200,000 people", "about 200000 people"),
        ("1,234,567", "1234567"),
        ("共101,102元", "共101102元"),
        ("-1,234", "-1234"),
    ],
)
def test_separators_and_blanks_go(text: str, expected: str) -> None:
    assert unify_amounts(text).text == expected
    assert unify_amounts(expected).text == expected


@pytest.mark.parametrize("text", ["1.234,50", "A1,234", "1.2.3", "1,00,000", "a, 5, b", "3万5", "iPhone 15"])
def test_other_numbers_stay(text: str) -> None:
    assert unify_amounts(text, yuan="word", expand_scales=True).text == text


def test_a_list_of_numbers_is_flagged() -> None:
    treated = unify_amounts("rooms 101,102,103")
    assert treated.text == "rooms 101,102,103"
    assert treated.flags == (("ambiguous-number", "101,102,103"),)


@pytest.mark.parametrize(
    ("text", "sign", "word"),
    [
        ("¥1,234.50", "¥1234.50", "1234.50元"),
        ("RMB 100", "¥100", "100元"),
        ("人民币100元", "¥100", "100元"),
        ("1.2万元", "¥1.2万", "1.2万元"),
        ("$100和100美元", "$100和100美元", "$100和100美元"),
    ],
)
def test_one_form_for_yuan(text: str, sign: str, word: str) -> None:
    assert unify_amounts(text, yuan="sign").text == sign
    assert unify_amounts(text, yuan="word").text == word


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1.2万元", "12000元"),
        ("3亿", "300000000"),
        ("3万亿元", "3000000000000元"),
        ("0.12345万", "1234.5"),
        ("10万多", "10万多"),
    ],
)
def test_scales_are_expanded_exactly(text: str, expected: str) -> None:
    assert unify_amounts(text, expand_scales=True).text == expected
