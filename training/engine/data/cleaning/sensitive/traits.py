"""What a text has of the things that findings cannot lack: most texts are done with after a few looks.

The patterns of the rules are tried at every character of a text, which is what they cost. Each of these tests
is true wherever its rule finds something, and costs next to nothing on the other texts.
"""

import re
from collections.abc import Callable, Mapping

# What [A-Za-z] matches besides, when case is ignored.
_OTHER_CASES = "\u0130\u0131\u017f\u212a"
# Digits with at most three other characters between each and the next: no rule has wider gaps.
_NUMBER = re.compile(r"[0-9](?:[^0-9]{0,3}[0-9])*+")
_KEY_RUN = re.compile(rf"[A-Za-z0-9+/=_.~{_OTHER_CASES}-]{{15}}")
_IBAN_START = re.compile(rf"[A-Za-z{_OTHER_CASES}]{{2}}[0-9]{{2}}")
_CODICE_END = re.compile(rf"[0-9]{{2}}[A-Za-z{_OTHER_CASES}][0-9]{{2}}[A-Za-z{_OTHER_CASES}][0-9]{{3}}")
_NATIONAL_ID_WORDS = (
    *("steuer", "idnr", "tin", "identifikationsnummer", "dni", "nif", "nie", "documento"),
    *("national insurance", "nino", "ni number", "ni no"),
)
_TAX_WORDS = (
    *("vat", "ustid", "ust-id", "umsatzsteuer", "uid", "tva", "iva", "btw", "nif", "mwst"),
    *("信用代码", "税号", "纳税人", "识别号"),
)


class Traits:
    """A folded text (see ``folding``) and what is known of it.

    Attributes:
        text: The text.
        num_digits: Digits of the number with the most.
    """

    def __init__(self, text: str) -> None:
        """Look at a text."""
        self.text = text
        self.num_digits = max(map(_count_digits, _NUMBER.findall(text)), default=0)
        # Unlike lower(), this takes the long s for an s, as patterns do that ignore case. They also take the
        # dotless i for an i, so the words looked for behind such patterns have none.
        self._casefolded = text.casefold()

    def has(self, *words: str) -> bool:
        """Return whether one of some lower-case words stands in the text, whatever its case."""
        text = self._casefolded
        for word in words:  # noqa: SIM110 (any() takes twice as long)
            if word in text:
                return True
        return False

    def may_hold(self, kind: str) -> bool:
        """Return whether rules may find a kind; where this is false they find none."""
        return _TESTS[kind](self)


def _count_digits(number: str) -> int:
    return len(number) if number.isdigit() else sum(map(str.isdigit, number))


def _may_hold_password(traits: Traits) -> bool:
    return traits.has("pass", "pwd", "kennwort", "密码", "口令") or "://" in traits.text


def _may_hold_ip(traits: Traits) -> bool:
    return traits.text.count(".") >= 3 or traits.text.count(":") >= 2


def _may_hold_national_id(traits: Traits) -> bool:
    # The French and the Italian number need no word.
    return traits.num_digits >= 14 or (
        traits.num_digits >= 6
        and (traits.has(*_NATIONAL_ID_WORDS) or _CODICE_END.search(traits.text) is not None)
    )


_TESTS: Mapping[str, Callable[[Traits], bool]] = {
    "private-key": lambda traits: "PRIVATE KEY" in traits.text,
    # The shortest are those of Slack.
    "credential": lambda traits: _KEY_RUN.search(traits.text) is not None,
    "password": _may_hold_password,
    "email": lambda traits: "@" in traits.text,
    "iban": lambda traits: traits.num_digits >= 2 and _IBAN_START.search(traits.text) is not None,
    "cn-id": lambda traits: traits.num_digits >= 15,
    "national-id": _may_hold_national_id,
    "us-ssn": lambda traits: traits.num_digits >= 9,
    "tax-number": lambda traits: traits.has(*_TAX_WORDS),
    "card": lambda traits: traits.num_digits >= 13,
    "phone": lambda traits: traits.num_digits >= 7,
    "ip": _may_hold_ip,
    "passport": lambda traits: traits.has("pass", "护照"),
    "plate": lambda traits: traits.has("plate", "kennze", "车牌", "牌照", "号牌"),
}
