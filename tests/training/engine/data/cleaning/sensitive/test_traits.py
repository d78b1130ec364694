# ruff: noqa: RUF001 (full-width and look-alike letters are what is tested)
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from training.engine.data.cleaning.sensitive import scan as scanning
from training.engine.data.cleaning.sensitive.folding import fold
from training.engine.data.cleaning.sensitive.kinds import RULE_LABELS, resolve_overlaps
from training.engine.data.cleaning.sensitive.phones import find_phones
from training.engine.data.cleaning.sensitive.traits import Traits

REGIONS = ("CN", "US", "GB", "DE")
KINDS = tuple(RULE_LABELS)
# One of each form that the rules know, some in the cases that patterns take for a Latin letter.
FINDINGS = (
    *("-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----", "AKIAABCDEFGHIJKLMNOP"),
    *(
        "xoxb-1234567890",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abcdefghijklmnop",
        "api_key = aB3dE5gH7jK9mN1p",
    ),
    *(
        "PA\u017f\u017fWORD: hunter22!",
        "密码是abc12345!",
        "Kennwort: Sommer2024",
        "postgres://app:s3cr3tpw@db.firm.com",
    ),
    *("anna.schmidt@firma-mail.de", "a＠b.com", "DE89 3704 0044 0532 0130 01", "GB94BARC10201530093459"),
    *("360426199101010071", "身份证 110105491231002", "1 85 05 78 006 084 91", "RSSMRA85T10A562S"),
    *("Steuer-ID 86 095 742 719", "DNI 54362315K", "nie X2482300W", "National Insurance QQ 12 34 56 A"),
    *("123-45-6789", "SSN 219 09 9998", "VAT DE136695976", "税号 91350100M000100Y43"),
    *("4532 0151 1283 0366", "card 4532015112830366", "+86 139 1234 5678", "(202) 456-1111", "030 23125 111"),
    *("8.8.4.4", "2a00:1450:4001:82a::200e", "护照号 E12345678", "passport no. C01X00T47", "车牌京A12345"),
    *("number plate: B-MW 1234", "KENN\u212aZEICHEN B MW 1234", "kennzeichen B-MW 1234"),
)
PIECES = st.sampled_from(
    (*FINDINGS, " ", ", ", "-", ".", "\0", "x", "7", "call ", "\u0130", "\u0131", "\u017f", "\u212a")
)


def find_everywhere(text: str) -> list[tuple[str, int, int]]:
    """What the rules find when each is tried on every text."""
    folded = fold(text)
    spans = [span for find in scanning._RULES.values() for span in find(folded)]
    spans += find_phones(folded, REGIONS)
    return [(span.kind, span.start, span.end) for span in resolve_overlaps(spans)]


def find(text: str) -> list[tuple[str, int, int]]:
    return [(span.kind, span.start, span.end) for span in scanning.scan(text, kinds=KINDS, regions=REGIONS)]


@pytest.mark.parametrize("text", FINDINGS)
def test_nothing_alone_is_passed_over(text: str) -> None:
    assert find(text) == find_everywhere(text)
    assert find(text.upper()) == find_everywhere(text.upper())


def test_all_kinds_are_among_the_texts() -> None:
    assert {kind for text in FINDINGS for kind, _, _ in find_everywhere(text)} == set(KINDS)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES | st.characters(), max_size=8).map("".join))
def test_no_test_hides_what_a_rule_finds(text: str) -> None:
    assert find(text) == find_everywhere(text)


def test_plain_prose_may_hold_nothing() -> None:
    traits = Traits("The kettle from order 7 has not arrived yet; please write to me.")
    assert [kind for kind in KINDS if traits.may_hold(kind)] == []


def test_digits_are_those_of_one_number() -> None:
    # Three characters between two digits still make one number; here a word stands between.
    assert Traits("2024-05-01 and then 12 34").num_digits == 8
    assert Traits("no digits").num_digits == 0
