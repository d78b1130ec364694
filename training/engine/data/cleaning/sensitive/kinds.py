"""The kinds of sensitive content, their placeholders, and what a finding is. No regular expressions here."""

from dataclasses import dataclass

RULE_LABELS = {
    "private-key": "PRIVATE_KEY",
    "credential": "SECRET",
    "password": "PASSWORD",
    "email": "EMAIL",
    "iban": "IBAN",
    "cn-id": "ID_NUMBER",
    "national-id": "ID_NUMBER",
    "us-ssn": "ID_NUMBER",
    "tax-number": "TAX_NUMBER",
    "card": "CARD",
    "phone": "PHONE",
    "ip": "IP",
    "passport": "PASSPORT",
    "plate": "PLATE",
}
"""Kinds that rules find, with the label of their placeholder; where two overlap, the earlier one wins."""

MODEL_LABELS = {
    "person-name": "NAME",
    "address": "ADDRESS",
    "birth-date": "BIRTH_DATE",
    "bank-account": "BANK_ACCOUNT",
    "health": "HEALTH",
    "other-secret": "SECRET",
}
"""Kinds that need understanding: only the second pass by a model finds them."""

LABELS = {**RULE_LABELS, **MODEL_LABELS}
DEFAULT_KINDS = tuple(kind for kind in RULE_LABELS if kind != "ip")
PRIORITY = {kind: number for number, kind in enumerate(LABELS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitiveSpan:
    """One finding in one text.

    Attributes:
        kind: A key of ``LABELS``.
        start: First character, counted in the text as given.
        end: Behind the last character.
        value: The same for every way to write the same thing: digits only, E.164, lower case. It is the
            secret itself: never for reports.
        is_reserved: Whether it is a documented example or public service, such as ``user@example.com``.
    """

    kind: str
    start: int
    end: int
    value: str
    is_reserved: bool = False


def mask(text: str) -> str:
    """Return what a report may show of a secret: at most two characters, never more than a quarter of it, and
    the length.
    """
    return f"{text[: min(2, len(text) // 4)]}… ({len(text)} characters)"


def resolve_overlaps(spans: list[SensitiveSpan]) -> list[SensitiveSpan]:
    """Return spans that do not overlap, in order of place: the weightier kind wins, then the longer one."""
    ranked = sorted(spans, key=lambda span: (PRIORITY[span.kind], span.start - span.end, span.start))
    if not ranked:
        return []
    offset = min(span.start for span in ranked)
    taken = bytearray(max(span.end for span in ranked) - offset)
    accepted = []
    for span in ranked:
        place = slice(span.start - offset, span.end - offset)
        if not any(taken[place]):
            taken[place] = b"\x01" * (span.end - span.start)
            accepted.append(span)
    return sorted(accepted, key=lambda span: span.start)
