"""`assay login` and `assay whoami`."""

import json
import sys
from typing import Annotated

import typer

from client.api import AssayApi
from client.cli.session import Session, session_of
from client.credentials import URL_VARIABLE
from client.errors import UsageError
from client.http import is_loopback, normalise_server_url
from client.models import Identity
from client.reports.text import safe


def login(
    context: typer.Context,
    url: Annotated[str | None, typer.Option(help="The server's address, like http://localhost:8000.")] = None,
    token_stdin: Annotated[
        bool, typer.Option("--token-stdin", help="Read the token from standard input instead of asking.")
    ] = False,
) -> None:
    """Check a token and keep it for this server (readable by you alone).

    The token is asked for, or read from standard input; it is never an argument, because other users of the
    machine see those.
    """
    session = session_of(context)
    server_url = normalise_server_url(_require_url(session, url))
    token = _read_token(token_stdin)
    with session.open_http(server_url, token) as http:
        identity = AssayApi(http).get_identity()
    session.login_file.save(server_url, token)
    if server_url.startswith("http://") and not is_loopback(server_url):
        session.output.notice("Tokens go to this server unencrypted; prefer an https address.", "yellow")
    session.output.result(safe(f"Logged in to {server_url}: {_describe(identity)}"))


def _require_url(session: Session, url: str | None) -> str:
    found = url or session.url_option or session.environ.get(URL_VARIABLE) or session.login_file.read()[0]
    if not found:
        raise UsageError("no-server", "Say which server: assay login --url http://localhost:8000")
    return found


def _read_token(token_stdin: bool) -> str:
    text = sys.stdin.readline() if token_stdin else str(typer.prompt("Token", hide_input=True, err=True))
    token = text.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise UsageError("invalid-token", "That is not a token; one looks like assay_<prefix>_<secret>.")
    return token


def _describe(identity: Identity) -> str:
    parts = [f"user {identity.user}"]
    if identity.token_name:
        parts.append(f"token {identity.token_name}")
    parts.append(f"scopes {', '.join(identity.scopes) or 'none'}")
    if identity.adapters is not None:
        parts.append(f"adapters {', '.join(identity.adapters) or 'none'} only")
    if identity.expires_at:
        parts.append(f"expires {identity.expires_at}")
    return "; ".join(parts)


def whoami(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print the server's answer.")] = False,
) -> None:
    """Show the server, user and rights that the present login or ASSAY_TOKEN stands for."""
    session = session_of(context)
    credentials = session.find_credentials()
    with session.open_http(credentials.server_url, credentials.token) as http:
        answer = http.get_json("whoami")
    if as_json:
        session.output.document(json.dumps(answer, indent=2) + "\n")
        return
    identity = Identity.from_json(answer)
    session.output.result(
        safe(f"{credentials.server_url}: {_describe(identity)} (from {credentials.origin})")
    )
