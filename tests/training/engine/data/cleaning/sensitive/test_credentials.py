# ruff: noqa: RUF001 (full-width marks are what is tested)
import math

import pytest

from training.engine.data.cleaning.sensitive.credentials import (
    entropy_bits,
    find_keys,
    find_passwords,
    find_private_keys,
)
from training.engine.data.cleaning.sensitive.folding import fold


def keys(text: str) -> list[str]:
    return [text[span.start : span.end] for span in find_keys(fold(text)) if not span.is_reserved]


def passwords(text: str) -> list[str]:
    return [text[span.start : span.end] for span in find_passwords(fold(text))]


# Made up in the forms that the issuers document.
@pytest.mark.parametrize(
    "key",
    [
        "AKIAJQ7ZK3M2NXR5WPTA",
        "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
        "github_pat_11ABCDEFG0a1b2c3d4e5f6_x7Y8z9",
        "glpat-a1B2c3D4e5F6g7H8i9J0",
        "xoxb-998877665544-AbCdEfGhIjKl",
        "AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY",
        "sk-proj-AbCd1234EfGh5678IjKl9012",
        "sk-ant-api03-Zx9Yw8Vu7Ts6Rq5Po4Nm3",
        "hf_AbCdEfGhIjKlMnOpQrStUvWxYz123456",
        "LTAI5tQ2w3E4r5T6y7U8",
        # RFC 7519 section 3.1
        "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODB9"
        ".dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
    ],
)
def test_keys_of_known_form(key: str) -> None:
    assert keys(f"我的key是 {key}，请看") == [key]
    assert keys(f"x{key}") == []


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('api_key = "9f8e7d6c5b4a39281706abcdef"', "9f8e7d6c5b4a39281706abcdef"),
        (
            "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYzz9Q8w7E6r",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzz9Q8w7E6r",
        ),
        ("Authorization: Bearer abcDEF123456ghiJKL789mno", "abcDEF123456ghiJKL789mno"),
        ("密钥：q7W3e9R1t5Y2u8I4o6P0", "q7W3e9R1t5Y2u8I4o6P0"),
    ],
)
def test_random_values_behind_a_name(text: str, key: str) -> None:
    assert keys(text) == [key]


@pytest.mark.parametrize(
    "text",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "sk-learn-something-very-long-name-here",
        "token: this-is-a-long-slug-2024",
        "max_tokens: 2048",
        "secret: aaaaaaaaaaaaaaaa1",
        "api_key=${SERVICE_API_KEY_FROM_ENV_1}",
        "9f8e7d6c5b4a39281706abcdef",
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "eyJhbGci.notreally.atoken",
    ],
)
def test_no_keys(text: str) -> None:
    assert keys(text) == []


@pytest.mark.parametrize(
    ("text", "password"),
    [
        ("password: hunter2", "hunter2"),
        ('{"password": "Tr0ub4dor&3"}', "Tr0ub4dor&3"),
        ("My password is S3cret!pass.", "S3cret!pass"),
        ("密码是abc123456，谢谢", "abc123456"),
        ("口令：654321", "654321"),
        ("postgres://app:s3cr3tpw@db.internal:5432/x", "s3cr3tpw"),
    ],
)
def test_passwords(text: str, password: str) -> None:
    assert passwords(text) == [password]


@pytest.mark.parametrize(
    "text",
    [
        "Password is required!",
        "the password is incorrect",
        "password reset at 10:30:00",
        "密码错误 123456",
        "password: ${DB_PASSWORD1}",
        "password: [PASSWORD_1]",
        "password: ********",
        "password: https://firm.test/reset?t=1",
        "password: 111111",  # no entropy
        "https://user:password@host/x",
    ],
)
def test_no_passwords(text: str) -> None:
    assert passwords(text) == []


def test_private_keys() -> None:
    block = "-----BEGIN RSA PRIVATE KEY-----\nMIIEow==\n-----END RSA PRIVATE KEY-----"
    spans = list(find_private_keys(f"see {block} and -----BEGIN PRIVATE KEY-----\nMIIB, cut"))
    assert [span.value for span in spans] == [block, "-----BEGIN PRIVATE KEY-----\nMIIB"]
    assert list(find_private_keys("-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----")) == []


def test_entropy() -> None:
    # By hand: four equally frequent characters are 2 bits, one character is 0.
    assert entropy_bits("abcd") == pytest.approx(2.0)
    assert entropy_bits("aaaa") == 0
    assert entropy_bits("aab") == pytest.approx(-(2 / 3) * math.log2(2 / 3) - (1 / 3) * math.log2(1 / 3))
    assert entropy_bits("") == 0
