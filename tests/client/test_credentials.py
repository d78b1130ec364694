import json
import stat
from pathlib import Path

import pytest

from client.credentials import LoginFile, find_credentials
from client.errors import CredentialsError


@pytest.fixture
def login_file(tmp_path: Path) -> LoginFile:
    return LoginFile(tmp_path / "config" / "credentials.json")


def test_a_saved_login_is_private_and_becomes_the_default(login_file: LoginFile) -> None:
    login_file.save("http://a", "token-a")
    login_file.save("http://b", "token-b")
    assert stat.S_IMODE(login_file.path.stat().st_mode) == 0o600
    assert not login_file.is_open_to_others()
    assert login_file.read() == ("http://b", {"http://a": "token-a", "http://b": "token-b"})
    assert [path.name for path in login_file.path.parent.iterdir()] == ["credentials.json"]


def test_an_open_login_file_is_noticed_and_closed_by_the_next_save(login_file: LoginFile) -> None:
    login_file.save("http://a", "x")
    login_file.path.chmod(0o644)
    assert login_file.is_open_to_others()
    login_file.save("http://a", "y")
    assert not login_file.is_open_to_others()


def test_the_environment_wins_over_the_login(login_file: LoginFile) -> None:
    login_file.save("http://a", "from-file")
    environ = {"ASSAY_URL": "http://b/api/v1", "ASSAY_TOKEN": " from-env "}
    found = find_credentials(url_option=None, environ=environ, login_file=login_file)
    assert (found.server_url, found.token, found.origin) == ("http://b", "from-env", "ASSAY_TOKEN")


def test_a_token_is_never_taken_for_another_server(login_file: LoginFile) -> None:
    login_file.save("http://a", "from-file")
    found = find_credentials(url_option="http://evil", environ={}, login_file=login_file)
    assert (found.server_url, found.token) == ("http://evil", None)


def test_the_login_is_used_when_nothing_else_is_said(login_file: LoginFile) -> None:
    login_file.save("http://a", "from-file")
    found = find_credentials(url_option=None, environ={"ASSAY_URL": ""}, login_file=login_file)
    assert (found.server_url, found.token) == ("http://a", "from-file")


def test_a_representation_does_not_hold_the_token(login_file: LoginFile) -> None:
    login_file.save("http://a", "very-secret")
    found = find_credentials(url_option=None, environ={}, login_file=login_file)
    assert "very-secret" not in repr(found)


def test_no_server_is_an_error_that_says_what_to_do(login_file: LoginFile) -> None:
    with pytest.raises(CredentialsError, match="assay login") as caught:
        find_credentials(url_option=None, environ={}, login_file=login_file)
    assert caught.value.code == "no-server"


@pytest.mark.parametrize("text", ["{", "[]", json.dumps({"servers": {"a": 1}}), "\x00"])
def test_a_damaged_login_file_is_told_and_can_be_replaced(login_file: LoginFile, text: str) -> None:
    login_file.path.parent.mkdir()
    login_file.path.write_text(text)
    with pytest.raises(CredentialsError) as caught:
        login_file.read()
    assert caught.value.code == "login-file-damaged"
    login_file.save("http://a", "x")
    assert login_file.read() == ("http://a", {"http://a": "x"})
