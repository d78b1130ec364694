"""`manage.py create_token`."""

from io import StringIO

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from registry.models import ApiToken
from registry.services.tokens import authenticate_token

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> str:
    out = StringIO()
    call_command("create_token", *arguments, stdout=out)
    return out.getvalue()


def test_prints_the_token_once() -> None:
    User.objects.create_user("ann")
    options = [
        "--user",
        "ann",
        "--name",
        "ci",
        "--scopes",
        "read, submit",
        "--adapters",
        "a,b",
        "--expires-days",
        "7",
    ]
    printed = run(*options)
    token = authenticate_token(printed.strip())
    assert token.scopes == ["read", "submit"] and token.adapters.count() == 2
    assert token.expires_at is not None and (token.expires_at - token.created_at).days in (6, 7)


@pytest.mark.parametrize(
    ("options", "part"),
    [
        (["--user", "nobody", "--name", "x", "--scopes", "read"], "no user 'nobody'"),
        (["--user", "ann", "--name", "x", "--scopes", "reed"], "Did you mean 'read'"),
        (["--user", "ann", "--name", "x", "--scopes", ","], "at least one scope"),
        (["--user", "ann", "--name", "x", "--scopes", "read", "--expires-days", "-1"], "past"),
        (["--user", "ann", "--name", "x", "--scopes", "read", "--expires-days", "1e300"], "too large"),
        (["--user", "ann", "--name", "x", "--scopes", "read", "--adapters", "A"], "'A'"),
    ],
)
def test_faults_are_told(options: list[str], part: str) -> None:
    User.objects.create_user("ann")
    with pytest.raises(CommandError, match=part):
        run(*options)
    assert ApiToken.objects.count() == 0
