"""Passports and number plates: without a checksum, so only behind a word that names them."""

import re
from collections.abc import Iterator

from training.engine.data.cleaning.sensitive.kinds import SensitiveSpan

_LINK = r"(?:\s|[:=#.\"'是为]|(?i:is|number|no)\b){0,8}"
_PASSPORT = re.compile(
    rf"(?:护照(?:号码|号)?|(?<![a-z])(?:passport|reisepass(?:nummer)?)){_LINK}"
    r"([A-Z]{1,2}[0-9]{7,8}|[CFGHJKLMNPRTVWXYZ][0-9CFGHJKLMNPRTVWXYZ]{8}|[0-9]{9})(?![0-9A-Z])",
    re.IGNORECASE,
)
_PLATE_CHINESE = re.compile(
    rf"(?:车牌|牌照|号牌)(?:号码|号)?{_LINK}"
    r"([京津沪渝冀豫云辽黑湘皖鲁新苏浙赣鄂桂甘晋蒙陕吉闽贵粤青藏川宁琼使领][A-HJ-NP-Z][ ·•.]?"
    r"[A-HJ-NP-Z0-9]{4,5}[A-HJ-NP-Z0-9挂学警港澳领使])(?![0-9A-Z])",
    re.IGNORECASE,
)
_PLATE_WESTERN = re.compile(
    rf"(?<![A-Za-z])(?i:(?:licen[cs]e|number) plate|plate number|kennzeichen){_LINK}"
    r"([A-ZÄÖÜ0-9]{1,4}[ -]?[A-Z0-9]{1,4}(?:[ -]?[A-Z0-9]{1,4})?)(?![0-9A-Za-z])"
)
_MIN_PLATE_CHARACTERS = 5


def find_passports(text: str) -> Iterator[SensitiveSpan]:
    """Yield passport numbers: one or two letters and 7 or 8 digits (China and others), nine digits (US, UK),
    or the nine signs of a German one, behind 护照, passport or Reisepass.
    """
    for match in _PASSPORT.finditer(text):
        if any(char.isdigit() for char in match.group(1)):
            yield _span("passport", match)


def find_plates(text: str) -> Iterator[SensitiveSpan]:
    """Yield number plates behind 车牌, license plate or Kennzeichen; Western ones have letters and digits."""
    for match in _PLATE_CHINESE.finditer(text):
        yield _span("plate", match)
    for match in _PLATE_WESTERN.finditer(text):
        value = match.group(1)
        has_both = any(char.isdigit() for char in value) and any(char.isalpha() for char in value)
        if has_both and len(value) >= _MIN_PLATE_CHARACTERS:
            yield _span("plate", match)


def _span(kind: str, match: re.Match[str]) -> SensitiveSpan:
    value = "".join(char for char in match.group(1) if char.isalnum()).upper()
    return SensitiveSpan(kind=kind, start=match.start(1), end=match.end(1), value=value)
