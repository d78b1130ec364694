# ruff: noqa: RUF001 (full-width marks are what is tested)
import pytest

from training.engine.data.cleaning.sensitive.contacts import find_emails, find_ip_addresses
from training.engine.data.cleaning.sensitive.folding import fold


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("邮箱zhang.san@163.com。", "zhang.san@163.com"),
        ("Write to X.Y+z@mail.firm.co.uk.", "x.y+z@mail.firm.co.uk"),
        ("ＡＢ＠ｑｑ．ｃｏｍ", "ab@qq.com"),
        ("<me_1@a-b.de>", "me_1@a-b.de"),
    ],
)
def test_addresses(text: str, value: str) -> None:
    spans = list(find_emails(fold(text)))
    assert [(span.value, span.is_reserved) for span in spans] == [(value, False)]


@pytest.mark.parametrize(
    "text", ["icon@2x.png", "lodash@4.17.21", "a@b", "a..b@c.com", "z***@163.com", "@name", "5@3.com.5"]
)
def test_what_only_has_the_sign(text: str) -> None:
    assert list(find_emails(text)) == []


@pytest.mark.parametrize(
    "text", ["user@example.com", "a@mail.example.org", "a@b.test", "git@github.com:org/repo.git"]
)
def test_documentation_is_reserved(text: str) -> None:
    assert [span.is_reserved for span in find_emails(text)] == [True]


def test_ip_addresses() -> None:
    found = find_ip_addresses("at 93.184.216.34 and 2606:2800:220:1:248:1893:25c8:1946, dns 8.8.8.8")
    assert [(span.value, span.is_reserved) for span in found] == [
        ("93.184.216.34", False),
        ("8.8.8.8", True),
        ("2606:2800:220:1:248:1893:25c8:1946", False),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "192.168.1.1 10.0.0.1",
        "192.0.2.7",
        "version 5.4.3.2",
        "1.2.3.4.5",
        "300.1.1.1",
        "10:30:45",
        "a::b",
        "::1",
    ],
)
def test_no_addresses_of_people(text: str) -> None:
    assert list(find_ip_addresses(text)) == []
