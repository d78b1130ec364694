"""What every command starts from: the global options, the output, and the way to the server."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import typer
from platformdirs import user_state_path

from client.api import AssayApi
from client.cli.console import Output, make_output
from client.credentials import Credentials, LoginFile, find_credentials
from client.http import AssayHttp, Retry
from client.retries import RetryPolicy
from client.uploads import FolderJournal
from client.waiting import WaitSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One run of the program.

    Attributes:
        output: Where to write.
        url_option: ``--url``, or None.
        environ: The environment, read here and nowhere deeper.
        login_file: Where tokens are kept.
        state_folder: Where unfinished uploads are remembered.
        retry_policy: Pauses between attempts.
        wait_settings: Pauses between looks; the timeout is the command's.
        transport: Replaces the network in tests.
    """

    output: Output
    url_option: str | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    login_file: LoginFile = field(default_factory=LoginFile.at_default_place)
    state_folder: Path = field(default_factory=lambda: user_state_path("assay"))
    retry_policy: RetryPolicy = field(default_factory=RetryPolicy)
    wait_settings: WaitSettings = field(default_factory=WaitSettings)
    transport: httpx.BaseTransport | None = None

    def find_credentials(self) -> Credentials:
        """Return the server and token to use; raises ``CredentialsError`` when no server is known."""
        return find_credentials(url_option=self.url_option, environ=self.environ, login_file=self.login_file)

    @contextmanager
    def open_http(self, server_url: str, token: str | None) -> Iterator[AssayHttp]:
        """Open a session with a server; pauses before a retry are told on stderr."""
        with AssayHttp(
            server_url,
            token,
            retry_policy=self.retry_policy,
            on_retry=self._tell_retry,
            transport=self.transport,
        ) as http:
            yield http

    @contextmanager
    def open_api(self) -> Iterator[AssayApi]:
        """Open the API of the server that options, environment or login name."""
        credentials = self.find_credentials()
        with self.open_http(credentials.server_url, credentials.token) as http:
            yield AssayApi(http)

    def upload_journal(self) -> FolderJournal:
        """Return the memory of unfinished uploads."""
        return FolderJournal(self.state_folder / "uploads")

    def _tell_retry(self, retry: Retry) -> None:
        self.output.notice(f"{retry.reason} Trying again in {retry.pause_seconds:.1f} s.", "yellow")


def make_session(url_option: str | None) -> Session:
    """Return the session of a real run: this process's environment, streams and user folders."""
    environ = dict(os.environ)
    return Session(output=make_output(environ), url_option=url_option, environ=environ)


def session_of(context: typer.Context) -> Session:
    """Return the session that the program's callback has put into the context.

    Raises:
        TypeError: There is none; the command was called outside the program.
    """
    session = context.find_root().obj
    if not isinstance(session, Session):
        raise TypeError("The command has no session.")
    return session
