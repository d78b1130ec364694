"""Numbers that states give to people and companies; checksums make a chance hit improbable."""

import re
from collections.abc import Callable, Iterator
from datetime import date

from stdnum.cn import uscc
from stdnum.de import idnr
from stdnum.es import dni, nie
from stdnum.eu import vat
from stdnum.fr import nir
from stdnum.it import codicefiscale

from training.engine.data.cleaning.sensitive.folding import context_before
from training.engine.data.cleaning.sensitive.kinds import SensitiveSpan

_LOOK_BACK = 40

# Province codes of GB/T 2260.
_PROVINCES = frozenset(
    (
        *("11", "12", "13", "14", "15", "21", "22", "23", "31", "32", "33", "34", "35", "36", "37"),
        *("41", "42", "43", "44", "45", "46", "50", "51", "52", "53", "54"),
        *("61", "62", "63", "64", "65", "71", "81", "82", "83"),
    )
)
_CN_ID = re.compile(
    r"(?<![0-9A-Za-z])[1-9][0-9]{5}[ -]?(?:19|20)[0-9]{2}[ -]?[0-9]{4}[ -]?[0-9]{3}[0-9Xx](?![0-9A-Za-z])"
)
_CN_ID_OLD = re.compile(r"(?<![0-9A-Za-z])[1-9][0-9]{14}(?![0-9A-Za-z])")
_CN_ID_WORD = re.compile(r"身份证|证件号|(?<![a-z])id card")
_CN_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)
_CN_CHECK = "10X98765432"
_CN_RESERVED = frozenset(("11010519491231002X", "440524188001010014"))
"""The examples of GB 11643-1999."""

_SSN = re.compile(r"(?<![0-9A-Za-z-])([0-9]{3})([- ]?)([0-9]{2})\2([0-9]{4})(?![0-9A-Za-z]|-[0-9])")
_SSN_WORD = re.compile(r"(?<![a-z])(?:ssn|social security)(?![a-z])")
_SSN_RESERVED = frozenset(("078051120", "219099999", "457555462", "123456789"))
"""Numbers that became public in advertisements, and the one that every form shows."""

_NIR = re.compile(
    r"(?<![0-9A-Za-z])[12][ .]?[0-9]{2}[ .]?(?:0[1-9]|1[0-2])[ .]?(?:[0-9]{2}|2[AB])"
    r"(?:[ .]?[0-9]{3}){2}[ .]?[0-9]{2}(?![0-9A-Za-z])"
)
_CODICE = re.compile(
    r"(?<![0-9A-Za-z])[A-Z]{6}[0-9]{2}[ABCDEHLMPRST][0-9]{2}[A-Z][0-9]{3}[A-Z](?![0-9A-Za-z])", re.IGNORECASE
)
_IDNR = re.compile(r"(?<![0-9A-Za-z])[1-9][0-9](?: ?[0-9]{3}){3}(?![0-9A-Za-z])")
_IDNR_WORD = re.compile(r"steuer-?id|(?<![a-z])(?:idnr|tin)(?![a-z])|identifikationsnummer")
_DNI = re.compile(r"(?<![0-9A-Za-z])(?:[0-9]{8}|[XYZ][0-9]{7})[ -]?[A-Z](?![0-9A-Za-z])", re.IGNORECASE)
_DNI_WORD = re.compile(r"(?<![a-z])(?:dni|nif|nie|documento)(?![a-z])")
_NINO = re.compile(
    r"(?<![0-9A-Za-z])[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?(?:[0-9]{2} ?){3}[A-D](?![0-9A-Za-z])",
    re.IGNORECASE,
)
_NINO_WORD = re.compile(r"national insurance|(?<![a-z])(?:nino|ni (?:number|no))(?![a-z])")
_NINO_RESERVED = frozenset(("AB123456C",))
_VAT = re.compile(r"(?<![0-9A-Za-z])[A-Z]{2} ?[0-9A-Z]{8,12}(?![0-9A-Za-z])")
_VAT_WORD = re.compile(
    r"(?<![a-z])(?:vat|ust-?id(?:-?nr)?|umsatzsteuer\S*|uid|tva|iva|partita iva|btw|nif|mwst\S*)(?![a-z])"
)
_USCC = re.compile(r"(?<![0-9A-Za-z])[0-9A-HJ-NPQRTUWXY]{18}(?![0-9A-Za-z])")
_USCC_WORD = re.compile(r"信用代码|税号|纳税人|识别号")


def find_chinese_ids(text: str) -> Iterator[SensitiveSpan]:
    """Yield resident identity numbers: 18 digits of GB 11643 with ISO 7064 MOD 11-2, province and a real date
    of birth; 15 digits of the old form only behind a word such as 身份证.
    """
    for match in _CN_ID.finditer(text):
        value = _alphanumerics(match.group())
        if value[:2] in _PROVINCES and _is_date(value[6:14]) and _is_check_right(value):
            yield _span("cn-id", match, value, is_reserved=value in _CN_RESERVED)
    for match in _CN_ID_OLD.finditer(text):
        value = match.group()
        if value[:2] in _PROVINCES and _is_date(f"19{value[6:12]}") and _is_behind(text, match, _CN_ID_WORD):
            yield _span("cn-id", match, value)


def find_social_security_numbers(text: str) -> Iterator[SensitiveSpan]:
    """Yield US social security numbers under the rules of the SSA: no area 000, 666 or 900-999, no group 00,
    no serial 0000. Without hyphens only behind the words.
    """
    for match in _SSN.finditer(text):
        area, separator, group, serial = match.groups()
        if area in ("000", "666") or area[0] == "9" or group == "00" or serial == "0000":
            continue
        if separator == "-" or _is_behind(text, match, _SSN_WORD):
            value = area + group + serial
            yield _span("us-ssn", match, value, is_reserved=value in _SSN_RESERVED)


def find_national_ids(text: str) -> Iterator[SensitiveSpan]:
    """Yield French NIR and Italian codice fiscale by structure and checksum; German IdNr, Spanish DNI and NIE
    (checksums that one number in ten or twenty passes) and British NINO (no checksum) only behind their
    names.
    """
    yield from _find(text, _NIR, "national-id", nir.is_valid)
    yield from _find(text, _CODICE, "national-id", codicefiscale.is_valid)
    yield from _find(text, _IDNR, "national-id", idnr.is_valid, word=_IDNR_WORD)
    yield from _find(
        text, _DNI, "national-id", lambda value: dni.is_valid(value) or nie.is_valid(value), word=_DNI_WORD
    )
    yield from _find(text, _NINO, "national-id", lambda _: True, word=_NINO_WORD, reserved=_NINO_RESERVED)


def find_tax_numbers(text: str) -> Iterator[SensitiveSpan]:
    """Yield numbers of companies: European VAT numbers and the Chinese unified social credit code, both with
    their checksums and only behind their names.
    """
    yield from _find(text, _VAT, "tax-number", vat.is_valid, word=_VAT_WORD)
    yield from _find(text, _USCC, "tax-number", uscc.is_valid, word=_USCC_WORD)


def _find(
    text: str,
    pattern: re.Pattern[str],
    kind: str,
    is_valid: Callable[[str], bool],
    *,
    word: re.Pattern[str] | None = None,
    reserved: frozenset[str] = frozenset(),
) -> Iterator[SensitiveSpan]:
    for match in pattern.finditer(text):
        value = _alphanumerics(match.group())
        if (word is None or _is_behind(text, match, word)) and is_valid(value):
            yield _span(kind, match, value, is_reserved=value in reserved)


def _span(kind: str, match: re.Match[str], value: str, *, is_reserved: bool = False) -> SensitiveSpan:
    return SensitiveSpan(
        kind=kind, start=match.start(), end=match.end(), value=value, is_reserved=is_reserved
    )


def _alphanumerics(text: str) -> str:
    return "".join(char for char in text if char.isalnum()).upper()


def _is_behind(text: str, match: re.Match[str], word: re.Pattern[str]) -> bool:
    return word.search(context_before(text, match.start(), _LOOK_BACK)) is not None


def _is_date(digits: str) -> bool:
    """Return whether YYYYMMDD is a day from 1900 on; the future is not judged, since a result may not change
    with the day of the run.
    """
    year, month, day = int(digits[:4]), int(digits[4:6]), int(digits[6:])
    try:
        date(year, month, day)
    except ValueError:
        return False
    return 1900 <= year < 2100


def _is_check_right(value: str) -> bool:
    total = sum(int(digit) * weight for digit, weight in zip(value[:17], _CN_WEIGHTS, strict=True))
    return _CN_CHECK[total % 11] == value[17]
