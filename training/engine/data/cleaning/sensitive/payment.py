"""Numbers that move money: payment cards and bank accounts."""

import re
from collections.abc import Iterator

from stdnum import iban, luhn

from training.engine.data.cleaning.sensitive.folding import is_bounded
from training.engine.data.cleaning.sensitive.kinds import SensitiveSpan
from training.engine.data.cleaning.sensitive.number_context import is_card_context, is_identifier_context

_CARD = re.compile(r"[0-9](?:[ -]?[0-9])*+")
_MIN_CARD_DIGITS, _MAX_CARD_DIGITS = 13, 19
_ISSUERS: tuple[tuple[re.Pattern[str], frozenset[int]], ...] = (
    (re.compile(r"4"), frozenset((13, 16, 19))),
    (re.compile(r"5[1-5]|222[1-9]|22[3-9][0-9]|2[3-6][0-9]{2}|27[01][0-9]|2720"), frozenset((16,))),
    (re.compile(r"3[47]"), frozenset((15,))),
    (re.compile(r"62|81"), frozenset((16, 17, 18, 19))),
    (re.compile(r"6011|64[4-9]|65"), frozenset((16, 19))),
    (re.compile(r"35(?:2[89]|[3-8][0-9])"), frozenset((16, 17, 18, 19))),
    (re.compile(r"30[0-5]|3[689]"), frozenset((14,))),
)
"""Prefix and lengths of ISO/IEC 7812: Visa, Mastercard, American Express, China UnionPay, Discover, JCB,
Diners.
"""
_USUAL_GROUPS = frozenset(
    ((4, 4, 4, 4), (4, 6, 5), (4, 6, 4), (4, 4, 4, 4, 3), (6, 13), (6, 10), (4, 4, 4, 4, 2))
)
_RESERVED_CARDS = frozenset(
    (
        *("4111111111111111", "4242424242424242", "4012888888881881", "4222222222222", "4000056655665556"),
        *("4000000000000002", "5555555555554444", "5105105105105100", "5200828282828210", "5454545454545454"),
        *("2223003122003222", "378282246310005", "371449635398431", "378734493671000", "6011111111111117"),
        *("6011000990139424", "30569309025904", "38520000023237", "3530111333300000", "3566002020360505"),
        *("6200000000000005", "6205500000000000004"),
    )
)
"""Test numbers that payment processors publish."""

_IBAN_START = re.compile(r"(?<![0-9A-Za-z])[A-Z]{2}[0-9]{2}(?=[ -]?[0-9A-Z])", re.IGNORECASE)
_IBAN_BODY = re.compile(r"(?:[ -]?[0-9A-Za-z]){11,30}+")
_IBAN_LENGTHS = {
    "AD": 24, "AE": 23, "AT": 20, "BE": 16, "BG": 22, "CH": 21, "CY": 28, "CZ": 24, "DE": 22, "DK": 18,
    "EE": 20, "ES": 24, "FI": 18, "FR": 27, "GB": 22, "GR": 27, "HR": 21, "HU": 28, "IE": 22, "IL": 23,
    "IS": 26, "IT": 27, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27, "MT": 31, "NL": 18, "NO": 15,
    "PL": 28, "PT": 25, "RO": 24, "SA": 24, "SE": 24, "SI": 19, "SK": 24, "TR": 26,
}  # fmt: skip
"""Lengths out of the IBAN registry (ISO 13616)."""
_RESERVED_IBANS = frozenset(
    (
        "DE89370400440532013000",
        "GB29NWBK60161331926819",
        "GB82WEST12345698765432",
        "GB33BUKB20201555555555",
        "FR1420041010050500013M02606",
        "FR7630006000011234567890189",
        "NL91ABNA0417164300",
        "ES9121000418450200051332",
        "IT60X0542811101000000123456",
        "CH9300762011623852957",
        "BE68539007547034",
        "AT611904300234573201",
    )
)
"""Examples of the registry and of text books."""


def find_cards(text: str) -> Iterator[SensitiveSpan]:
    """Yield payment card numbers: known issuer and length, Luhn's checksum, and written like a card or
    without a sign that it is something else. One number in ten passes Luhn, so what stands behind the word
    "order" is believed to be an order.
    """
    for match in _CARD.finditer(text):
        length = match.end() - match.start()
        if length < _MIN_CARD_DIGITS or length > 2 * _MAX_CARD_DIGITS:
            continue
        if not is_bounded(text, match.start(), match.end()) or _is_fraction(text, match):
            continue
        digits = "".join(char for char in match.group() if char not in " -")
        if not _is_issued(digits) or not luhn.is_valid(digits):
            continue
        is_card = is_card_context(text, match.start())
        if not is_card and not _looks_like_card(text, match, digits):
            continue
        yield SensitiveSpan(
            kind="card",
            start=match.start(),
            end=match.end(),
            value=digits,
            is_reserved=digits in _RESERVED_CARDS,
        )


def find_ibans(text: str) -> Iterator[SensitiveSpan]:
    """Yield international bank account numbers: the country's length and structure, ISO 7064 MOD 97-10."""
    for match in _IBAN_START.finditer(text):
        length = _IBAN_LENGTHS.get(match.group()[:2].upper())
        body = _IBAN_BODY.match(text, match.end())
        if length is None or body is None:
            continue
        end = _end_of(text, match.start(), body.end(), length)
        if end is None or not is_bounded(text, match.start(), end):
            continue
        value = "".join(char for char in text[match.start() : end] if char not in " -").upper()
        if iban.is_valid(value):
            yield SensitiveSpan(
                kind="iban",
                start=match.start(),
                end=end,
                value=value,
                is_reserved=value in _RESERVED_IBANS,
            )


def _is_issued(digits: str) -> bool:
    return any(len(digits) in lengths and prefix.match(digits) for prefix, lengths in _ISSUERS)


def _looks_like_card(text: str, match: re.Match[str], digits: str) -> bool:
    if is_identifier_context(text, match.start(), match.end()):
        return False
    groups = tuple(len(group) for group in match.group().replace("-", " ").split(" "))
    # Thirteen digits are a barcode (EAN-13) more often than an old Visa card.
    return groups in _USUAL_GROUPS or (len(groups) == 1 and len(digits) > _MIN_CARD_DIGITS)


def _is_fraction(text: str, match: re.Match[str]) -> bool:
    before = text[max(0, match.start() - 2) : match.start()]
    after = text[match.end() : match.end() + 2]
    return (before[-1:] in (".", "-", "+") and before != ". ") or (after[:1] == "." and after[1:].isdigit())


def _end_of(text: str, start: int, stop: int, length: int) -> int | None:
    """Return the place behind the ``length``-th letter or digit, None when there are fewer."""
    for place in range(start, stop):
        length -= text[place].isalnum()
        if length == 0:
            return place + 1
    return None
