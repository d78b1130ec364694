"""`manage.py create_token --user U --name N --scopes read,submit`: makes an API token, printed once."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User
from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from registry.choices import TokenScope
from registry.errors import AssayError
from registry.services.actors import SYSTEM
from registry.services.tokens import create_token


class Command(BaseCommand):
    """Makes an API token; whoever can run this on the server may."""

    help = "Makes an API token and prints it; it is not shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declares the options."""
        parser.add_argument("--user", required=True, help="User name of the token's owner.")
        parser.add_argument("--name", required=True, help="What the token is for.")
        parser.add_argument(
            "--scopes", required=True, help=f"Separated by commas: {', '.join(TokenScope.values)}."
        )
        parser.add_argument(
            "--adapters", default="", help="Names separated by commas; left out: every adapter."
        )
        parser.add_argument("--expires-days", type=float, default=None, help="Left out: it does not expire.")

    def handle(self, **options: Any) -> None:
        """Makes the token.

        Raises:
            CommandError: no such user, or an option is at fault.
        """
        user = User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no user {options['user']!r}.")
        days: float | None = options["expires_days"]
        try:
            issued = create_token(
                user=user,
                name=options["name"],
                scopes=_split(options["scopes"]),
                adapter_names=_split(options["adapters"]),
                expires_at=None if days is None else timezone.now() + timedelta(days=days),
                actor=SYSTEM,
            )
        except AssayError as error:
            lines = [error.detail, *(f"{fault.where}: {fault.message}" for fault in error.faults[1:])]
            raise CommandError("\n".join(lines)) from error
        except OverflowError as error:
            raise CommandError("--expires-days is too large.") from error
        self.stdout.write(issued.text)


def _split(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]
