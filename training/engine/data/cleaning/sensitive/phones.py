"""Telephone numbers, by the numbering plans of the phonenumbers library.

Many numbers of ten or eleven digits are valid in some plan. So validity alone is not enough: a number must
also be written like one (a plus sign, a trunk zero, the groups of its country) or stand behind a word such as
"call".
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import phonenumbers
from phonenumbers import NumberParseException, PhoneNumberType

from training.engine.data.cleaning.sensitive.folding import is_bounded, keep_digits
from training.engine.data.cleaning.sensitive.kinds import SensitiveSpan
from training.engine.data.cleaning.sensitive.number_context import (
    is_identifier_context,
    is_phone_context,
)

# Possessive: a run is taken whole or not at all, and no text is read twice.
_RUN = re.compile(r"[+(]{0,2}[0-9](?:[ ().\-/]{0,3}[0-9])*+")
_GROUP = re.compile(r"[0-9]+")
_PART = re.compile(r"[^ ]+")
_MIN_DIGITS, _MAX_DIGITS = 7, 17
"""15 of ITU-T E.164 and a prefix 00."""
_MAX_CHARACTERS = 60
_MIN_TRUNK_DIGITS = 9

_MOBILE_GROUPS = frozenset(((11,), (3, 4, 4), (3, 3, 5), (3, 8), (7, 4), (1,) * 11))
_LANDLINE_TAILS = frozenset(((7,), (8,), (4, 4), (3, 4)))
_NANP_GROUPS = frozenset(((3, 3, 4), (1, 3, 3, 4), (3, 7)))
_MAX_HOUSE_NUMBER_DIGITS = 3
_MAX_EXTENSION_DIGITS = 5
_DATE = re.compile(
    r"(?:19|20)[0-9]{2}([-./ ])(?:0?[1-9]|1[0-2])\1[0-3]?[0-9](?![0-9])"
    r"|[0-3]?[0-9]([-./ ])[0-3]?[0-9]\2(?:19|20)?[0-9]{2}(?![0-9])"
    r"|(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:[0-9]{6})?$"
)
_PUBLIC_SERVICES = frozenset(
    (
        PhoneNumberType.TOLL_FREE,
        PhoneNumberType.PREMIUM_RATE,
        PhoneNumberType.SHARED_COST,
        PhoneNumberType.UAN,
    )
)
# NANPA sets 555-0100 to 555-0199 aside for fiction; Ofcom and the Bundesnetzagentur do so with the ranges
# below. 13800138000 is China Mobile's own line for top-ups, and stands in forms as an example.
_RESERVED = re.compile(
    r"\+1[0-9]{3}55501[0-9]{2}$|\+442079460[0-9]{3}$|\+447700900[0-9]{3}$|\+441632960[0-9]{3}$"
    r"|\+44(?:113|114|115|116|117|118|121|131|141|151|161|191)4960[0-9]{3}$"
    r"|\+493023125[0-9]{3}$|\+496990009[0-9]{3}$|\+494066969[0-9]{3}$|\+492214710[0-9]{3}$|\+498999998[0-9]{3}$"
    r"|\+491713920[0-9]{3}$|\+49176040690[0-9]{2}$|\+491729925904$|\+491749(?:091317|464308)$"
    r"|\+8613800138000$"
)
_RESERVED_LOCAL = re.compile(r"55501[0-9]{2}$")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """Groups of digits that may be one number, and how they are written."""

    text: str
    start: int
    groups: tuple[int, ...]
    separators: frozenset[str]

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def digits(self) -> str:
        return keep_digits(self.text)


@dataclass(frozen=True, slots=True)
class _Number:
    """A valid number; the type is one of ``PhoneNumberType``."""

    country_code: int
    national: str
    number_type: int

    @property
    def is_reserved(self) -> bool:
        if self.number_type in _PUBLIC_SERVICES:
            return True
        return _RESERVED.match(f"+{self.country_code}{self.national}") is not None


def find_phones(text: str, regions: Sequence[str]) -> Iterator[SensitiveSpan]:
    """Yield telephone numbers; fictitious ranges and the public numbers of companies are reserved.

    Args:
        text: Folded text.
        regions: ISO 3166 codes; national numbers are read by the plans of these, in this order. Numbers with
            a country code are found for every country.
    """
    for run in _RUN.finditer(text):
        length = run.end() - run.start()
        if length < _MIN_DIGITS:
            continue
        found = _find_one(text, run, regions) if length <= _MAX_CHARACTERS else None
        if found is not None:
            yield found
        elif " " in run.group():
            yield from _find_in_parts(text, run, regions)


def _find_one(text: str, run: re.Match[str], regions: Sequence[str]) -> SensitiveSpan | None:
    """Judge the run as one number, then without a small number in front or an extension behind."""
    groups = [group.span() for group in _GROUP.finditer(text, run.start(), run.end())]
    bounds = [(run.start(), run.end())]
    if len(groups) > 1:
        after_first = text[groups[0][1] : groups[1][0]]
        if " " in after_first and groups[0][1] - groups[0][0] <= _MAX_HOUSE_NUMBER_DIGITS:
            opening = "(" if after_first.endswith("(") else ""
            bounds.append((groups[1][0] - len(opening), run.end()))
        before_last = text[groups[-2][1] : groups[-1][0]]
        is_landline = text[groups[0][0]] == "0" and len(groups) > 2
        if (" " in before_last or is_landline) and groups[-1][1] - groups[-1][0] <= _MAX_EXTENSION_DIGITS:
            bounds.append((run.start(), groups[-2][1]))
    for start, end in bounds:
        span = _judge(text, start, end, regions)
        if span is not None:
            return span
    return None


def _find_in_parts(text: str, run: re.Match[str], regions: Sequence[str]) -> Iterator[SensitiveSpan]:
    for part in _PART.finditer(text, run.start(), run.end()):
        if _MIN_DIGITS <= part.end() - part.start() <= _MAX_CHARACTERS:
            span = _judge(text, part.start(), part.end(), regions)
            if span is not None:
                yield span


def _judge(text: str, start: int, end: int, regions: Sequence[str]) -> SensitiveSpan | None:
    candidate = _make_candidate(text, start, end)
    if candidate is None or _DATE.match(candidate.text):
        return None
    is_called = is_phone_context(text, candidate.start)
    numbers = _read_international(candidate, is_called)
    if not numbers and (is_called or not is_identifier_context(text, candidate.start, candidate.end)):
        numbers = _read_national(candidate, regions, is_called)
    if not numbers:
        return None
    return SensitiveSpan(
        kind="phone",
        start=candidate.start,
        end=candidate.end,
        value=numbers[0].national,
        is_reserved=_RESERVED_LOCAL.match(candidate.digits) is not None
        or any(number.is_reserved for number in numbers),
    )


def _make_candidate(text: str, start: int, end: int) -> _Candidate | None:
    if text[start] == "(" and ")" not in text[start:end]:
        start += 1
    groups = [group.span() for group in _GROUP.finditer(text, start, end)]
    sizes = tuple(stop - begin for begin, stop in groups)
    if (
        not groups
        or not _MIN_DIGITS <= sum(sizes) <= _MAX_DIGITS
        or not is_bounded(text, start, groups[-1][1])
    ):
        return None
    separators = frozenset(text[groups[i][1] : groups[i + 1][0]].strip() for i in range(len(groups) - 1))
    return _Candidate(text[start : groups[-1][1]], start, sizes, separators)


def _parse(text: str, region: str | None) -> _Number | None:
    """Return the number, None when it is not valid in its plan."""
    try:
        number = phonenumbers.parse(text, region)
    except NumberParseException:
        return None
    # The type of a number is unknown exactly when it is not valid, and to ask for both costs twice.
    number_type = phonenumbers.number_type(number)
    if number_type == PhoneNumberType.UNKNOWN:
        return None
    return _Number(number.country_code or 0, phonenumbers.national_significant_number(number), number_type)


def _read_international(candidate: _Candidate, is_called: bool) -> list[_Number]:
    digits = candidate.digits
    if "+" in candidate.text:
        number = _parse(f"+{digits}", None)
    elif digits.startswith("00") and (len(candidate.groups) > 1 or is_called or digits.startswith("0086")):
        number = _parse(f"+{digits[2:]}", None)
    else:
        number = None
    return [] if number is None else [number]


def _read_national(candidate: _Candidate, regions: Sequence[str], is_called: bool) -> list[_Number]:
    """Return the number as the regions read it that write it so; behind a word such as "call", as every
    region reads it where it is valid.
    """
    numbers = []
    for region in regions:
        if _is_written_like(candidate, region):
            number = _parse(candidate.text, region)
            # Without separators only a mobile number is known by its looks.
            if number and (len(candidate.groups) > 1 or number.number_type == PhoneNumberType.MOBILE):
                numbers.append(number)
    if numbers or not is_called:
        return numbers
    return [number for region in regions if (number := _parse(candidate.text, region))]


def _is_written_like(candidate: _Candidate, region: str) -> bool:
    """Return whether the groups are those in which people of the region write their numbers."""
    digits, groups, separators = candidate.digits, candidate.groups, candidate.separators
    if region == "CN":
        return _is_written_chinese(digits, groups, separators)
    if phonenumbers.country_code_for_region(region) == 1:
        # "202 456 1111" may be three numbers: a sign is wanted.
        return groups in _NANP_GROUPS and separators <= {"", "-", ".", ")", "("} and separators != {""}
    if not digits.startswith("0") or len(digits) < _MIN_TRUNK_DIGITS:
        return False
    if len(groups) == 1:
        return True
    if groups == (2,) * 5:
        return len(separators) == 1 and separators <= {"", ".", "-"}
    return 3 <= groups[0] <= 6 and len(groups) <= 6 and separators <= {"", "-", "/", ")"}


def _is_written_chinese(digits: str, groups: tuple[int, ...], separators: frozenset[str]) -> bool:
    if digits.startswith("86") and len(digits) == 13:
        digits = digits[2:]
        groups = groups[1:] if groups[0] == 2 else (groups[0] - 2, *groups[1:])
    if digits[0] == "1":
        return groups in _MOBILE_GROUPS and len(separators) <= 1 and separators <= {"", "-"}
    is_landline = digits[0] == "0" and groups[0] in (3, 4) and groups[1:] in _LANDLINE_TAILS
    return is_landline and separators <= {"", "-", ")"}
