"""All rules over one text."""

from collections.abc import Callable, Collection, Iterator, Sequence

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


def scan(text: str, *, kinds: Collection[str], regions: Sequence[str]) -> list[SensitiveSpan]:
    """Return all findings of the kinds in a text, in order of place, none overlapping; reserved ones as well.

    Time is linear in the length of the text, whatever it holds.

    Args:
        text: As written; places in the findings count its characters.
        kinds: Keys of ``RULE_LABELS``.
        regions: ISO 3166 codes of the telephone plans.
    """
    folded = fold(text)
    spans = [span for kind, find in _RULES.items() if kind in kinds for span in find(folded)]
    if "phone" in kinds:
        spans.extend(find_phones(folded, regions))
    return resolve_overlaps(spans)
