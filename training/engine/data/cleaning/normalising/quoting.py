"""Whether answers quote the input's dates, amounts and units, or write them in a form of their own."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping

from training.engine.data.checks.value_forms import read_amount_form, read_date_form

KINDS = ("date", "amount", "unit")
_QUOTING_FRACTION = 0.9
"""A part of all values of a kind: from here on the dataset's answers quote, they do not normalise."""
_ISO_DATE = "2024-01-05"
_CURRENCY = re.compile("[¥￥€£₩$元]|RMB|CNY|USD|EUR|GBP|JPY|HKD|块钱|人民币|英镑|港币")


class QuotingTally:
    """Counts, kind by kind, which values are quotes.

    A dataset may quote amounts and write dates as ISO 8601, so no kind speaks for another.
    """

    def __init__(self, rule: str, counts: Counter[Hashable]) -> None:
        """Take the counts, which others may add to.

        Args:
            rule: "auto" decides by the counts; "keep" and "change" decide against them.
            counts: Gets values under ("seen", kind), quotes also under ("quoted", kind).
        """
        self._rule, self._counts = rule, counts

    def add(self, kinds: Iterable[str], *, is_quote: bool) -> None:
        """Count one value under its kinds."""
        for kind in kinds:
            self._counts["seen", kind] += 1
            self._counts["quoted", kind] += is_quote

    def keeps(self, kinds: Iterable[str]) -> bool:
        """Return whether quotes of all these kinds stay as the input has them; of no kind they do."""
        if self._rule != "auto":
            return self._rule == "keep"
        return all(
            self._counts["quoted", kind] >= _QUOTING_FRACTION * self._counts["seen", kind] for kind in kinds
        )

    def to_json(self) -> Mapping[str, bool]:
        """Return for each kind whether its quotes stay."""
        return {kind: self.keeps((kind,)) for kind in KINDS}


def find_own_kind(value: str) -> tuple[str, ...]:
    """Return the kind of a value that is nothing but a date, amount or quantity in the form that this step
    writes; () for other texts.
    """
    if read_date_form(value) == _ISO_DATE:
        return ("date",)
    amount = read_amount_form(value)
    if amount is None or not amount[0]:
        return ()
    return ("amount",) if _CURRENCY.search(value) else ("unit",)
