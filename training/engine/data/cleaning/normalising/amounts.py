"""Amounts of money and other large numbers in one way of writing."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal

from training.engine.data.cleaning.normalising.treated import Treated

_NUMBER = re.compile(
    r"(?<![0-9.,])(?:[0-9]{1,3}+(?:,[0-9]{3})++(?:\.[0-9]++)?|[0-9]++(?:\.[0-9]++)?)(?![0-9]|[.,][0-9])"
)
_CODES = "RMB|CNY|USD|EUR|GBP|JPY|HKD"
_BEFORE = re.compile(
    rf"(?:(?P<sign>[¥￥€£₩]|(?:US|HK)?\$)|(?P<code>(?<![A-Za-z])(?:{_CODES})|人民币))(?P<gap> ?)$"
)
_WORDS = "元|块钱|人民币|美元|欧元|英镑|日元|港元|港币"
_AFTER = re.compile(rf"(?P<gap> ?)(?P<scale>万亿|万|亿)?(?P<word>{_WORDS}|(?:{_CODES}|yuan)(?![A-Za-z]))?")
# Words that follow a count, not the last number of a list.
_COUNTED = re.compile(r" ?(?:[个人件台套次份名位户%]|(?:kg|km|people|users|times|dollars|euros|pounds)\b)")
# Without one of these all amounts are as they should be: a comma or a blank to take out, a wide sign; in
# front of a number a line feed, which the currency may stand before.
_UNTIDY = re.compile(r"[0-9](?:,[0-9]| [^\x00-\x7f])|￥|(?:[¥€£₩$] |\n)[0-9]")
_LOOK_BACK = 5
_LETTER = re.compile(r"[A-Za-z_]")
# "3万5" and "3万多" are more than 30000.
_SCALE_GOES_ON = re.compile(r"[0-9多余几来千百]")
_SCALES: Mapping[str, Decimal] = {
    "": Decimal(1),
    "万": Decimal(10**4),
    "亿": Decimal(10**8),
    "万亿": Decimal(10**12),
}
_MAX_EXPANDED_DIGITS = 15
_YUAN_BEFORE = ("¥", "RMB", "CNY", "人民币")
_YUAN_AFTER = ("元", "块钱", "人民币", "RMB", "CNY", "yuan")
YUAN_FORMS = ("keep", "sign", "word")


@dataclass(frozen=True, slots=True)
class _Amount:
    """An amount in its pieces, as they are written one after the other; "" where a piece is missing."""

    currency: str
    currency_gap: str
    number: str
    gap: str
    scale: str
    word: str

    def __str__(self) -> str:
        return self.currency + self.currency_gap + self.number + self.gap + self.scale + self.word


def unify_amounts(text: str, *, yuan: str = "keep", expand_scales: bool = False) -> Treated:
    """Return the text with numbers without thousands separators and signs and units close to them.

    ``¥ 1,234.50`` becomes ``¥1234.50``, ``12,000 元`` becomes ``12000元``; digits are never rounded or added.
    Flag: ``ambiguous-number`` (``101,102`` may be two rooms); it stays as it is.

    Args:
        text: Prose.
        yuan: ``keep``; ``sign`` writes ``¥100``, ``word`` writes ``100元`` for amounts that say ¥, 元, RMB or
            CNY. Only for data without yen, which has the same sign.
        expand_scales: Whether ``1.2万`` becomes ``12000`` (万 10^4, 亿 10^8).
    """
    if yuan == "keep" and not expand_scales and not _UNTIDY.search(text):
        return Treated(text)
    pieces: list[str] = []
    flags: list[tuple[str, str]] = []
    position = 0
    for found in _NUMBER.finditer(text):
        before = _BEFORE.search(text, max(position, found.start() - _LOOK_BACK), found.start())
        after = _AFTER.match(text, found.end())
        if after is None or (not before and _LETTER.match(text, max(0, found.start() - 1))):
            continue
        start, end = before.start() if before else found.start(), after.end()
        amount = _read_amount(found[0], before, after)
        if "," in found[0] and not _is_one_number(text, amount, end):
            flags.append(("ambiguous-number", found[0]))
            continue
        is_scale_whole = not _SCALE_GOES_ON.match(text, end)
        if expand_scales and amount.scale and is_scale_whole:
            amount = _expand(amount)
        pieces += [text[position:start], str(_set_yuan(_tidy(amount), yuan))]
        position = end
    pieces.append(text[position:])
    return Treated("".join(pieces), tuple(dict.fromkeys(flags)))


def _read_amount(number: str, before: re.Match[str] | None, after: re.Match[str]) -> _Amount:
    has_unit = bool(after["scale"] or after["word"])
    return _Amount(
        currency=(before["sign"] or before["code"]) if before else "",
        currency_gap=before["gap"] if before else "",
        number=number,
        gap=after["gap"],
        scale=after["scale"] or "",
        word=(after["word"] or "") if has_unit else "",
    )


def _is_one_number(text: str, amount: _Amount, end: int) -> bool:
    """Return whether commas part thousands: a list of three-digit numbers looks the same."""
    is_plain = amount.number.index(",") < 3 or "." in amount.number or amount.number.endswith(",000")
    has_unit = bool(amount.currency or amount.scale or amount.word)
    return is_plain or has_unit or bool(_COUNTED.match(text, end))


def _tidy(amount: _Amount) -> _Amount:
    is_sign = amount.currency.endswith(("¥", "￥", "$", "€", "£", "₩"))
    unit = amount.scale + amount.word
    return _Amount(
        currency=amount.currency.replace("￥", "¥"),
        currency_gap="" if is_sign else amount.currency_gap,
        number=amount.number.replace(",", ""),
        gap="" if unit and not unit.isascii() else amount.gap,
        scale=amount.scale,
        word=amount.word,
    )


def _expand(amount: _Amount) -> _Amount:
    digits = amount.number.replace(",", "")
    if len(digits) > _MAX_EXPANDED_DIGITS:
        return amount
    value = Decimal(digits) * _SCALES[amount.scale]
    gap = amount.gap if amount.word else ""
    return _Amount(amount.currency, amount.currency_gap, f"{value.normalize():f}", gap, "", amount.word)


def _set_yuan(amount: _Amount, form: str) -> _Amount:
    says_yuan = amount.currency in _YUAN_BEFORE or amount.word in _YUAN_AFTER
    is_foreign = (amount.currency and amount.currency not in _YUAN_BEFORE) or (
        amount.word and amount.word not in _YUAN_AFTER
    )
    if form == "keep" or not says_yuan or is_foreign:
        return amount
    if form == "sign":
        return _Amount("¥", "", amount.number, "", amount.scale, "")
    return _Amount("", "", amount.number, "", amount.scale, "元")
