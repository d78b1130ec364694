"""Which server and token to use: the option, then the environment, then the login file.

The login file holds one token per server, so that a token is never sent to a server that it is not for. It
is readable by its owner alone. The environment is given by the caller; nothing here reads it.
"""

import json
import os
import stat
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_config_path

from client.errors import CredentialsError
from client.http import normalise_server_url

URL_VARIABLE = "ASSAY_URL"
TOKEN_VARIABLE = "ASSAY_TOKEN"  # noqa: S105 - the name of a variable
_OTHERS_MAY = stat.S_IRWXG | stat.S_IRWXO


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """A server's address and the token for it (None: not logged in). ``origin``: where the token is from."""

    server_url: str
    token: str | None
    origin: str

    def __repr__(self) -> str:
        """Leave the token out: representations end up in logs."""
        return f"Credentials(server_url={self.server_url!r}, origin={self.origin!r})"


@dataclass(frozen=True, slots=True)
class LoginFile:
    """The file with the logins.

    Attributes:
        path: Its place; it need not exist.
    """

    path: Path

    @classmethod
    def at_default_place(cls) -> "LoginFile":
        """Return the login file of this user, under the platform's configuration folder."""
        return cls(user_config_path("assay") / "credentials.json")

    def read(self) -> tuple[str | None, dict[str, str]]:
        """Return the default server's address (None without a login) and the token of each server.

        Raises:
            CredentialsError: The file cannot be read or is damaged.
        """
        try:
            value = json.loads(self.path.read_text(encoding="utf-8"))
            servers = value["servers"]
            default = value.get("default")
            tokens = {str(url): str(entry["token"]) for url, entry in servers.items()}
        except FileNotFoundError:
            return None, {}
        except OSError as error:
            raise CredentialsError(
                "login-file-unreadable", f"{self.path} cannot be read: {error.strerror}."
            ) from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CredentialsError(
                "login-file-damaged", f"{self.path} is damaged; remove it and run `assay login` again."
            ) from error
        return (default if isinstance(default, str) else None), tokens

    def save(self, server_url: str, token: str) -> None:
        """Keep the token for a server and make that server the default; readable by the owner only.

        Raises:
            CredentialsError: The file cannot be written.
        """
        try:
            _, tokens = self.read()
        except CredentialsError as error:
            if error.code != "login-file-damaged":
                raise
            tokens = {}
        tokens[server_url] = token
        value = {
            "schema_version": 1,
            "default": server_url,
            "servers": {url: {"token": kept} for url, kept in sorted(tokens.items())},
        }
        try:
            self._write(json.dumps(value, indent=2) + "\n")
        except OSError as error:
            raise CredentialsError(
                "login-file-unwritable", f"{self.path} cannot be written: {error.strerror}."
            ) from error

    def _write(self, text: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        # mkstemp makes files with mode 0600, so the token is at no moment readable by others.
        descriptor, name = tempfile.mkstemp(dir=self.path.parent, prefix=".credentials-")
        temporary = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(text)
            temporary.replace(self.path)
        finally:
            temporary.unlink(missing_ok=True)

    def is_open_to_others(self) -> bool:
        """Whether the group or others may read or write the file; False when there is none."""
        try:
            return os.name == "posix" and bool(self.path.stat().st_mode & _OTHERS_MAY)
        except FileNotFoundError:
            return False


def find_credentials(
    *,
    url_option: str | None,
    environ: Mapping[str, str],
    login_file: LoginFile,
) -> Credentials:
    """Return the server and token to use.

    Args:
        url_option: Address given on the command line, or None.
        environ: The environment; ``ASSAY_URL`` and ``ASSAY_TOKEN`` are read. Empty ones count as unset.
        login_file: Where `assay login` keeps its tokens.

    Raises:
        CredentialsError: No server is known.
        UsageError: The address is not one.
    """
    default_url, tokens = login_file.read()
    url = url_option or environ.get(URL_VARIABLE) or default_url
    if not url:
        raise CredentialsError(
            "no-server",
            f"No server is known. Run `assay login --url http://localhost:8000`, or set {URL_VARIABLE} "
            f"and {TOKEN_VARIABLE}.",
        )
    server_url = normalise_server_url(url)
    if environ.get(TOKEN_VARIABLE):
        token = environ[TOKEN_VARIABLE].strip()
        return Credentials(server_url=server_url, token=token, origin=TOKEN_VARIABLE)
    return Credentials(server_url=server_url, token=tokens.get(server_url), origin=str(login_file.path))
