"""`manage.py prepare_stack`: what `assay up` does before it starts the servers."""

import json
import os
import secrets
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import BaseCommand

from registry.choices import TokenScope
from registry.services.actors import SYSTEM
from registry.services.tokens import create_token
from training.services.handbook import load_shipped_handbook

ADMIN_NAME = "admin"
PASSWORD_BYTES = 15


class Command(BaseCommand):
    """Brings database, static files, first user and first token into place; again, it changes nothing."""

    help = (
        "Migrates, collects static files, brings in the shipped handbook, makes the first admin and its "
        "token. What a person must be shown once goes to standard output as one JSON object, everything "
        "else to standard error."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Takes where the token goes."""
        parser.add_argument("--token-file", type=Path, required=True, help="file for the first admin's token")

    def handle(self, *args: Any, **options: Any) -> None:
        """Does all steps in their order."""
        call_command("migrate", interactive=False, verbosity=0, stdout=sys.stderr)
        call_command("collectstatic", interactive=False, verbosity=0, stdout=sys.stderr)
        load_shipped_handbook()
        shown: dict[str, str] = {}
        password = create_first_admin()
        if password is not None:
            shown |= {"admin_user": ADMIN_NAME, "admin_password": password}
        token = create_first_token(options["token_file"])
        if token is not None:
            shown["admin_token"] = token
        self.stdout.write(json.dumps(shown))


def create_first_admin() -> str | None:
    """Makes the user "admin" when there is no superuser yet; returns its random password, else None."""
    if User.objects.filter(is_superuser=True).exists():
        return None
    password = secrets.token_urlsafe(PASSWORD_BYTES)
    User.objects.create_superuser(ADMIN_NAME, password=password)
    return password


def create_first_token(path: Path) -> str | None:
    """Makes a token with every right and writes it to `path`, for its owner alone, unless the file exists.

    Returns:
        The token, None when there is one already or no admin who could own it.
    """
    admin = User.objects.filter(is_superuser=True, is_active=True).order_by("pk").first()
    if admin is None or path.exists():
        return None
    issued = create_token(user=admin, name="local command line", scopes=[TokenScope.ADMIN], actor=SYSTEM)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(issued.text + "\n")
    return issued.text
