from collections import Counter

import pytest

from training.engine.data.cleaning.normalising.quoting import QuotingTally, find_own_kind


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        ("2024-03-05", ("date",)),
        ("2024/3/5", ()),
        ("1280.50元", ("amount",)),
        ("$12", ("amount",)),
        ("10 kg", ("unit",)),
        ("2.4公斤", ("unit",)),
        ("12", ()),
        ("damaged", ()),
        ("sent on 2024-03-05", ()),
        ("", ()),
    ],
)
def test_own_forms(value: str, kinds: tuple[str, ...]) -> None:
    assert find_own_kind(value) == kinds


def test_nine_of_ten_quotes_are_quoting_kind_by_kind() -> None:
    tally = QuotingTally("auto", Counter())
    for number in range(10):
        tally.add(("date",), is_quote=number > 0)
        tally.add(("amount", "unit"), is_quote=number > 1)
    assert tally.to_json() == {"date": True, "amount": False, "unit": False}
    assert tally.keeps(()) and not tally.keeps(("date", "unit"))


@pytest.mark.parametrize(("rule", "keeps"), [("keep", True), ("change", False)])
def test_a_stated_rule_needs_no_counts(rule: str, keeps: bool) -> None:
    tally = QuotingTally(rule, Counter())
    tally.add(("date",), is_quote=not keeps)
    assert set(tally.to_json().values()) == {keeps}
