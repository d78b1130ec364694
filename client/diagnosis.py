"""The checks of `assay doctor`: each says what it found and, when something is wrong, what to do about it."""

import platform
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

import httpx

from client import __version__
from client.credentials import Credentials, LoginFile
from client.errors import AssayApiError, AssayError
from client.http import AssayHttp, read_json
from client.local_checks import find_local_parts
from client.models import Identity
from client.run_models import ReadyCheck, read_ready_checks

OLDEST_PYTHON = (3, 11)
# Tokens and resume protection use times in days and hours; a minute is noise, and more confuses logs and
# expiry.
MAX_CLOCK_SKEW_SECONDS = 60.0
_VERSION_HEADER = "Assay-Version"


class Condition(StrEnum):
    """How a check came out; only WRONG makes `assay doctor` fail."""

    GOOD = "ok"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One check. ``remedy``: what to do, None where nothing is wrong."""

    name: str
    condition: Condition
    detail: str
    remedy: str | None = None


def check_python() -> Check:
    """Check the interpreter's version."""
    detail = f"{platform.python_version()} at {sys.executable}"
    if sys.version_info[:2] >= OLDEST_PYTHON:
        return Check(name="python", condition=Condition.GOOD, detail=detail)
    remedy = "Install Python 3.11 or newer and assay-gate into it."
    return Check(name="python", condition=Condition.WRONG, detail=detail, remedy=remedy)


def check_login_file(login_file: LoginFile) -> Check:
    """Check that the login file, where there is one, is readable by its owner only."""
    name = "login file"
    try:
        login_file.read()
        is_open = login_file.is_open_to_others()
    except AssayError as error:
        return Check(name=name, condition=Condition.WRONG, detail=error.message, remedy="assay login")
    if is_open:
        return Check(
            name=name,
            condition=Condition.WRONG,
            detail=f"{login_file.path} can be read by other users",
            remedy=f"chmod 600 '{login_file.path}'",
        )
    return Check(name=name, condition=Condition.GOOD, detail=str(login_file.path))


def iterate_local_checks() -> Iterator[Check]:
    """Yield what this machine has of a server; a missing part is no fault, a client needs none of it."""
    for part in find_local_parts():
        detail = part.found or "not installed (only a server on this machine needs it)"
        yield Check(name=f"local {part.name}", condition=Condition.GOOD, detail=detail)


def iterate_server_checks(http: AssayHttp, credentials: Credentials) -> Iterator[Check]:
    """Yield the checks that ask the server; the first that makes the others pointless is the last.

    Args:
        http: Session with the server; few retries, so that the answer comes soon.
        credentials: Where server and token are from.
    """
    try:
        response = http.request("GET", "/health/ready", ok_statuses=frozenset({503}))
        read_json(response)
    except AssayError as error:
        remedy = "Check the address (ASSAY_URL or `assay login --url`) and that the server runs (`assay up`)."
        yield Check(name="server", condition=Condition.WRONG, detail=error.message, remedy=remedy)
        return
    yield Check(name="server", condition=Condition.GOOD, detail=f"{http.server_url} answers")
    yield check_version(response.headers)
    yield check_clock(response.headers, now=datetime.now(UTC))
    yield from _iterate_ready_checks(response)
    yield check_token(http, credentials)


def check_version(headers: Mapping[str, str]) -> Check:
    """Compare the client's version with the one that the server names in its headers."""
    server_version = headers.get(_VERSION_HEADER)
    if server_version is None:
        detail = f"client {__version__}; the server does not name its version"
        return Check(name="version", condition=Condition.UNKNOWN, detail=detail)
    detail = f"client {__version__}, server {server_version}"
    # Before 1.0 a minor version may change the contract (semver.org, item 4), so both numbers must agree.
    if server_version.split(".")[:2] == __version__.split(".")[:2]:
        return Check(name="version", condition=Condition.GOOD, detail=detail)
    remedy = f"pip install 'assay-gate=={server_version}'"
    return Check(name="version", condition=Condition.WRONG, detail=detail, remedy=remedy)


def check_clock(headers: Mapping[str, str], *, now: datetime) -> Check:
    """Compare this machine's clock with the server's Date header (whole seconds)."""
    try:
        server_time = parsedate_to_datetime(headers.get("Date", ""))
    except ValueError:
        return Check(name="clock", condition=Condition.UNKNOWN, detail="the server sends no Date header")
    if server_time.tzinfo is None:
        server_time = server_time.replace(tzinfo=UTC)
    skew_seconds = (now - server_time).total_seconds()
    detail = f"{abs(skew_seconds):.0f} s {'ahead of' if skew_seconds > 0 else 'behind'} the server"
    if abs(skew_seconds) <= MAX_CLOCK_SKEW_SECONDS:
        return Check(name="clock", condition=Condition.GOOD, detail=detail)
    remedy = "Set the clock of this machine or of the server by NTP (timedatectl set-ntp true)."
    return Check(name="clock", condition=Condition.WRONG, detail=detail, remedy=remedy)


_READY_REMEDIES = {
    "database": "Look at DATABASE_URL and the database's log; then run the migrations (`assay up` does).",
    "broker": "Look at REDIS_URL and whether the Redis server runs.",
    "store": "Look at ARTIFACT_STORE: is the disk full, may the server write there?",
    "scheduler": "Start the scheduler; `assay up` starts one.",
    "workers": "Start the workers; `assay up` starts one per queue.",
}


def _iterate_ready_checks(response: httpx.Response) -> Iterator[Check]:
    try:
        parts: tuple[ReadyCheck, ...] = read_ready_checks(read_json(response))
    except AssayError as error:
        yield Check(name="readiness", condition=Condition.UNKNOWN, detail=error.message)
        return
    for part in parts:
        name = f"server {part.name}"
        if part.is_ok:
            yield Check(name=name, condition=Condition.GOOD, detail=part.detail or "ready")
        else:
            remedy = _READY_REMEDIES.get(part.name, "Look into the server's log.")
            yield Check(
                name=name, condition=Condition.WRONG, detail=part.detail or "not ready", remedy=remedy
            )


def check_token(http: AssayHttp, credentials: Credentials) -> Check:
    """Check that the token is valid and name its rights."""
    if credentials.token is None:
        return Check(
            name="token",
            condition=Condition.WRONG,
            detail=f"no token for {credentials.server_url}",
            remedy=f"assay login --url {credentials.server_url}, or set ASSAY_TOKEN",
        )
    try:
        identity = Identity.from_json(http.get_json("whoami"))
    except AssayApiError as error:
        remedy = "Make a new token in the admin UI and run `assay login`." if error.status == 401 else None
        return Check(name="token", condition=Condition.WRONG, detail=error.message, remedy=remedy)
    except AssayError as error:
        return Check(name="token", condition=Condition.WRONG, detail=error.message)
    detail = f"{identity.user}, scopes {', '.join(identity.scopes) or 'none'}"
    if identity.adapters is not None:
        detail += f", adapters {', '.join(identity.adapters)} only"
    if identity.expires_at:
        detail += f", expires {identity.expires_at}"
    return Check(name="token", condition=Condition.GOOD, detail=f"{detail} (from {credentials.origin})")
