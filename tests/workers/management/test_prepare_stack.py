"""The set-up before the first start, and before every other one."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from registry.services.tokens import authenticate_token
from training.engine.handbook.rows import HandbookRow
from training.models import Symptom

pytestmark = pytest.mark.django_db


def test_secrets_are_made_once(tmp_path: Path, settings: Any, capsys: pytest.CaptureFixture[str]) -> None:
    settings.STATIC_ROOT = tmp_path / "static"
    token_file = tmp_path / "admin_token"
    call_command("prepare_stack", token_file=token_file)
    shown = json.loads(capsys.readouterr().out)
    admin = User.objects.get(username=shown["admin_user"])
    assert admin.is_superuser and admin.check_password(shown["admin_password"])
    assert token_file.read_text().strip() == shown["admin_token"]
    assert token_file.stat().st_mode & 0o777 == 0o600
    assert authenticate_token(shown["admin_token"]).scopes == ["admin"]
    assert (tmp_path / "static" / "admin").is_dir()

    call_command("prepare_stack", token_file=token_file)
    assert json.loads(capsys.readouterr().out) == {}
    assert User.objects.count() == 1

    token_file.unlink()
    call_command("prepare_stack", token_file=token_file)
    assert list(json.loads(capsys.readouterr().out)) == ["admin_token"]


def test_the_handbook_comes_with_the_server(tmp_path: Path, settings: Any) -> None:
    settings.STATIC_ROOT = tmp_path / "static"
    for _ in range(2):
        call_command("prepare_stack", token_file=tmp_path / "admin_token")
        assert Symptom.objects.count() == len(HandbookRow)
