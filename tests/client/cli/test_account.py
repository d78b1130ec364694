import stat

import pytest

from client.credentials import LoginFile
from tests.client.cli.conftest import Assay
from tests.client.fake_server import TOKEN, FakeServer


def test_login_checks_the_token_before_it_keeps_it(
    assay: Assay, server_url: str, login_file: LoginFile
) -> None:
    refused = assay("login", "--url", server_url, "--token-stdin", stdin="assay_wrong\n", is_logged_in=False)
    assert refused.exit_code == 3
    assert "not-authenticated" in refused.stderr
    assert not login_file.path.exists()
    result = assay("login", "--url", server_url, "--token-stdin", stdin=f"{TOKEN}\n", is_logged_in=False)
    assert result.exit_code == 0, result.output
    assert "user ada" in result.stdout
    assert TOKEN not in result.output
    assert stat.S_IMODE(login_file.path.stat().st_mode) == 0o600
    assert "scopes read, submit" in assay("whoami", is_logged_in=False).stdout


def test_login_asks_for_the_token(assay: Assay, server_url: str) -> None:
    result = assay("login", "--url", server_url, stdin=f"{TOKEN}\n", is_logged_in=False)
    assert result.exit_code == 0, result.output
    assert TOKEN not in result.output


@pytest.mark.parametrize("token", ["", "two words", "not-ascii-ü"])
def test_what_is_no_token_is_not_sent(fake: FakeServer, assay: Assay, server_url: str, token: str) -> None:
    result = assay("login", "--url", server_url, "--token-stdin", stdin=f"{token}\n", is_logged_in=False)
    assert result.exit_code == 3
    assert fake.requests == []


def test_without_login_every_command_says_what_to_do(assay: Assay) -> None:
    result = assay("whoami", is_logged_in=False)
    assert result.exit_code == 3
    assert "assay login" in result.stderr


def test_url_option_wins(assay: Assay) -> None:
    result = assay("--url", "http://127.0.0.1:1", "whoami")
    assert result.exit_code == 3
    assert "http://127.0.0.1:1 cannot be reached" in result.stderr
