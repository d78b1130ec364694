"""Keys, tokens and passwords."""

import base64
import binascii
import json
import math
import re
from collections import Counter
from collections.abc import Iterator

from training.engine.data.cleaning.sensitive.folding import BARRIER
from training.engine.data.cleaning.sensitive.kinds import SensitiveSpan

_KEY = re.compile(
    r"(?<![A-Za-z0-9_-])(?:"
    r"(?P<aws>(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})"
    r"|(?P<github>gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{22,255})"
    r"|(?P<gitlab>glpat-[A-Za-z0-9_-]{20,64})"
    r"|(?P<slack>xox[abeoprs]-[A-Za-z0-9-]{10,250})"
    r"|(?P<google>AIza[A-Za-z0-9_-]{35})"
    r"|(?P<stripe>[rs]k_(?:live|test)_[A-Za-z0-9]{16,250})"
    r"|(?P<hugging_face>hf_[A-Za-z0-9]{30,40})"
    r"|(?P<npm>npm_[A-Za-z0-9]{36})"
    r"|(?P<aliyun>LTAI[A-Za-z0-9]{12,26})"
    r"|(?P<tencent>AKID[A-Za-z0-9]{32})"
    r"|(?P<model>sk-[A-Za-z0-9_-]{20,250})"
    r")(?![A-Za-z0-9_-])"
)
_JWT = re.compile(
    r"(?<![A-Za-z0-9_-])(eyJ[A-Za-z0-9_-]{8,4096}+)\.([A-Za-z0-9_-]{8,65536}+)\.([A-Za-z0-9_-]{16,4096}+)"
)
_RESERVED_KEY = re.compile(
    r"EXAMPLE|example|1234567890|0123456789|x{6}|X{6}|(?i:your[-_]?(?:api)?[-_]?key)|(.)\1{7}"
)
_RESERVED_JWT = "SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c"
"""Signature of the token that jwt.io shows."""

_PEM_START = re.compile(r"-----BEGIN (?:[A-Z]{2,10} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PEM_END = re.compile(r"-----END (?:[A-Z]{2,10} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_PEM_BODY = re.compile(r"[A-Za-z0-9+/=\s\\]*+")

_IS = r"[\"']?\s{0,3}(?:[:=]{1,2}>?|(?<![a-z])is\s|是|为)\s{0,3}[\"'“\u2018`]?"
_PASSWORD = re.compile(
    r"(?:密码|口令|(?<![A-Za-z])(?:password|passwd|pwd|passcode|passwort|kennwort|passphrase))"
    rf"{_IS}([!-~]{{6,128}})",
    re.IGNORECASE,
)
_URL_PASSWORD = re.compile(r"://[A-Za-z0-9._%-]{1,64}:([^\s:/@\"'<>\0]{3,128})@")
_TOKEN = re.compile(
    r"(?:密钥|令牌|(?<![A-Za-z])(?:api[_ -]?key|access[_ -]?key(?:[_ -]?id)?|secret(?:[_ -]?access)?[_ -]?key"
    r"|private[_ -]?key|app[_ -]?key|(?:app|client)[_ -]?secret|token|secret|credentials?|authorization))"
    rf"{_IS}(?:(?:bearer|basic) )?([A-Za-z0-9+/=_.~-]{{16,512}})",
    re.IGNORECASE,
)
_PLACEHOLDER = re.compile(
    r"[\[<{(]|\$[{(A-Z_]|%[sd({A-Z]|x{3}|\*{3}|your|changeme|example|placeholder|redacted|https?:|www\.|\.?/"
    r"|process\.|os\.|env[.(\[]|(?:null|none|true|false|undefined|required|string)\W*$",
    re.IGNORECASE,
)
_TRAILING = ".,;:)\"'`>]}"
_STRONG_SYMBOLS = frozenset("!@#$%^&*+=~?")
_DOCUMENTED_PASSWORDS = frozenset(("pass", "password", "pwd", "passwd"))
_MIN_PASSWORD_BITS = 2.0
_MIN_TOKEN_BITS = 3.5
"""Shannon entropy a character: random base64 of 20 characters has about 4, lower-case words about 3.2."""
_MIN_DIGIT_FRACTION = 0.2


def find_keys(text: str) -> Iterator[SensitiveSpan]:
    """Yield keys and tokens in the forms of their issuers, JSON Web Tokens, and random values that are
    assigned to a name such as ``api_key``. Keys that say EXAMPLE or count 1234567890 are reserved.
    """
    for match in _KEY.finditer(text):
        if match.lastgroup != "model" or _is_mixed(match.group()[3:]):
            yield _span("credential", match, 0, is_reserved=_RESERVED_KEY.search(match.group()) is not None)
    for match in _JWT.finditer(text):
        if _is_token_header(match.group(1)):
            yield _span("credential", match, 0, is_reserved=match.group(3) == _RESERVED_JWT)
    for match in _TOKEN.finditer(text):
        value = match.group(1).rstrip(_TRAILING)
        if _PLACEHOLDER.match(value) or not _is_mixed(value) or entropy_bits(value) < _MIN_TOKEN_BITS:
            continue
        yield _span(
            "credential", match, 1, length=len(value), is_reserved=_RESERVED_KEY.search(value) is not None
        )


def find_passwords(text: str) -> Iterator[SensitiveSpan]:
    """Yield what is assigned to a password, when it looks like one, and passwords inside addresses."""
    for match in _PASSWORD.finditer(text):
        value = match.group(1).rstrip(_TRAILING)
        if _looks_like_password(value):
            yield _span("password", match, 1, length=len(value))
    for match in _URL_PASSWORD.finditer(text):
        if not _PLACEHOLDER.match(match.group(1)) and match.group(1).lower() not in _DOCUMENTED_PASSWORDS:
            yield _span("password", match, 1)


def find_private_keys(text: str) -> Iterator[SensitiveSpan]:
    """Yield private keys in PEM form, to their end line, or as far as the text looks like base64."""
    ends = iter([*_PEM_END.finditer(text)])
    end = next(ends, None)
    starts = [*_PEM_START.finditer(text)]
    for number, start in enumerate(starts):
        limit = starts[number + 1].start() if number + 1 < len(starts) else len(text)
        while end is not None and end.start() < start.end():
            end = next(ends, None)
        if end is not None and end.start() < limit and BARRIER not in text[start.end() : end.start()]:
            stop = end.end()
        else:
            body = _PEM_BODY.match(text, start.end(), limit)
            stop = body.end() if body else start.end()
        yield SensitiveSpan(
            kind="private-key", start=start.start(), end=stop, value=text[start.start() : stop]
        )


def entropy_bits(text: str) -> float:
    """Return the Shannon entropy of the characters' frequencies in bits a character; 0 for an empty text."""
    total = len(text)
    return -sum(n / total * math.log2(n / total) for n in Counter(text).values())


def _span(
    kind: str, match: re.Match[str], group: int, *, length: int | None = None, is_reserved: bool = False
) -> SensitiveSpan:
    start, end = match.span(group)
    end = end if length is None else start + length
    value = match.string[start:end]
    return SensitiveSpan(kind=kind, start=start, end=end, value=value, is_reserved=is_reserved)


def _is_mixed(text: str) -> bool:
    """Return whether letters and digits are mixed as in random values, not as in a name with a year."""
    num_digits = sum(char.isdigit() for char in text)
    has_letters = any(char.isalpha() for char in text)
    has_both_cases = text.lower() != text and text.upper() != text
    is_dense = num_digits >= _MIN_DIGIT_FRACTION * len(text)
    return has_letters and num_digits > 0 and (has_both_cases or is_dense)


def _looks_like_password(value: str) -> bool:
    if len(value) < 6 or _PLACEHOLDER.match(value):
        return False
    has_digit = any(char.isdigit() for char in value)
    has_symbol = any(char in _STRONG_SYMBOLS for char in value[:-1])
    return (has_digit or has_symbol) and entropy_bits(value) >= _MIN_PASSWORD_BITS


def _is_token_header(part: str) -> bool:
    try:
        header = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        return False
    return isinstance(header, dict) and "alg" in header
