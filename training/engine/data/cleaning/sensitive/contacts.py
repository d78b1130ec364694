"""E-mail addresses and IP addresses."""

import ipaddress
import re
from collections.abc import Iterator

from training.engine.data.cleaning.sensitive.folding import context_before
from training.engine.data.cleaning.sensitive.kinds import SensitiveSpan

# Lengths are those of RFC 5321 and RFC 1035: 64 in front of the sign, 63 a label. Every repetition is bounded
# or possessive: a text of "a.a.a." costs no more than its length.
_EMAIL = re.compile(
    r"(?<![A-Za-z0-9._%+-])([A-Za-z0-9_](?:[A-Za-z0-9_%+-]|\.(?!\.)){0,63}+)@"
    r"((?:[A-Za-z0-9][A-Za-z0-9-]{0,62}+\.){1,8})([A-Za-z]{2,24})(?![A-Za-z0-9-]|\.[A-Za-z0-9])"
)
_FILE_ENDINGS = frozenset(
    ("png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "pdf", "css", "js", "json", "html")
)
_RESERVED_ENDINGS = frozenset(("example", "test", "invalid", "localhost"))
_RESERVED_DOMAIN = re.compile(r"(?:^|\.)example\.(?:com|net|org|edu|cn)$")

_IPV4 = re.compile(r"(?<![0-9A-Za-z.])(?:[0-9]{1,3}\.){3}[0-9]{1,3}(?![0-9A-Za-z]|\.[0-9])")
_IPV6 = re.compile(r"(?<![0-9A-Za-z:.])[0-9A-Fa-f]{0,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?![0-9A-Za-z:])")
_VERSION_BEFORE = re.compile(r"(?:版本|(?<![a-z])(?:version|ver|release|v|build|firmware)\.?)[\s:]*$")
_PUBLIC_RESOLVERS = frozenset(
    (
        *("8.8.8.8", "8.8.4.4", "1.1.1.1", "1.0.0.1", "9.9.9.9"),
        *("114.114.114.114", "223.5.5.5", "223.6.6.6", "119.29.29.29"),
    )
)


def find_emails(text: str) -> Iterator[SensitiveSpan]:
    """Yield e-mail addresses; those under the names of RFC 2606 and the ``git@`` of repositories are
    reserved.
    """
    for match in _EMAIL.finditer(text):
        local, parents, ending = (part.lower() for part in match.groups())
        if ending in _FILE_ENDINGS:
            continue
        is_reserved = (
            ending in _RESERVED_ENDINGS
            or _RESERVED_DOMAIN.search(parents + ending) is not None
            or (local == "git" and text[match.end() : match.end() + 1] in (":", "/"))
        )
        yield SensitiveSpan(
            kind="email",
            start=match.start(),
            end=match.end(),
            value=f"{local}@{parents}{ending}",
            is_reserved=is_reserved,
        )


def find_ip_addresses(text: str) -> Iterator[SensitiveSpan]:
    """Yield addresses that are routed in the Internet; private and documentation ranges are no findings.

    Public resolvers such as 8.8.8.8 are reserved.
    """
    for pattern in (_IPV4, _IPV6):
        for match in pattern.finditer(text):
            try:
                address = ipaddress.ip_address(match.group())
            except ValueError:
                continue
            # "a::b" of a programming language is a valid address too; people's are in 2000::/3.
            if address.version == 6 and int(address) >> 125 != 1:
                continue
            if not address.is_global or _VERSION_BEFORE.search(context_before(text, match.start(), 16)):
                continue
            yield SensitiveSpan(
                kind="ip",
                start=match.start(),
                end=match.end(),
                value=str(address),
                is_reserved=str(address) in _PUBLIC_RESOLVERS,
            )
