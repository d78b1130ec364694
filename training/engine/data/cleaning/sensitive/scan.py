"""All rules over one text."""

from collections.abc import Callable, Iterator
from functools import lru_cache

from training.engine.data.cleaning.sensitive.contacts import find_emails, find_ip_addresses
from training.engine.data.cleaning.sensitive.credentials import find_keys, find_passwords, find_private_keys
from training.engine.data.cleaning.sensitive.folding import fold
from training.engine.data.cleaning.sensitive.identity import (
    find_chinese_ids,
    find_national_ids,
    find_social_security_numbers,
    find_tax_numbers,
)
from training.engine.data.cleaning.sensitive.keyword_context import find_passports, find_plates
from training.engine.data.cleaning.sensitive.kinds import SensitiveSpan, resolve_overlaps
from training.engine.data.cleaning.sensitive.payment import find_cards, find_ibans
from training.engine.data.cleaning.sensitive.phones import find_phones
from training.engine.data.cleaning.sensitive.traits import Traits

_MAX_REMEMBERED = 4096
_MAX_REMEMBERED_CHARACTERS = 1000
_RULES: dict[str, Callable[[str], Iterator[SensitiveSpan]]] = {
    "private-key": find_private_keys,
    "credential": find_keys,
    "password": find_passwords,
    "email": find_emails,
    "iban": find_ibans,
    "cn-id": find_chinese_ids,
    "national-id": find_national_ids,
    "us-ssn": find_social_security_numbers,
    "tax-number": find_tax_numbers,
    "card": find_cards,
    "ip": find_ip_addresses,
    "passport": find_passports,
    "plate": find_plates,
}


def scan(text: str, *, kinds: tuple[str, ...], regions: tuple[str, ...]) -> tuple[SensitiveSpan, ...]:
    """Return all findings of the kinds in a text, in order of place, none overlapping; reserved ones as well.

    Time is linear in the length of the text, whatever it holds.

    Args:
        text: As written; places in the findings count its characters.
        kinds: Keys of ``RULE_LABELS``.
        regions: ISO 3166 codes of the telephone plans.
    """
    if len(text) <= _MAX_REMEMBERED_CHARACTERS:
        return _scan_remembered(text, kinds, regions)
    return _scan(text, kinds, regions)


def _scan(text: str, kinds: tuple[str, ...], regions: tuple[str, ...]) -> tuple[SensitiveSpan, ...]:
    folded = fold(text)
    traits = Traits(folded)
    spans: list[SensitiveSpan] = []
    for kind in filter(traits.may_hold, kinds):
        spans += find_phones(folded, regions) if kind == "phone" else _RULES[kind](folded)
    return tuple(resolve_overlaps(spans))


# The system message stands in every example, and tags in every other one.
_scan_remembered = lru_cache(maxsize=_MAX_REMEMBERED)(_scan)
