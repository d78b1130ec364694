"""`assay doctor`: is everything in order between this machine and the server?"""

import json
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import Annotated

import typer

from client.cli.program import CommandExit
from client.cli.session import Session, session_of
from client.diagnosis import (
    Check,
    Condition,
    check_login_file,
    check_python,
    iterate_local_checks,
    iterate_server_checks,
)
from client.errors import AssayError
from client.exit_codes import ERROR, PASSED
from client.reports.text import make_table, safe

_STYLES = {Condition.GOOD: "green", Condition.WRONG: "bold red", Condition.UNKNOWN: "yellow"}
_MAX_ATTEMPTS = 2


def doctor(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print the checks as JSON.")] = False,
) -> None:
    """Check this machine, the server, the token and the clock, and say what to do. Exit code 3 when anything
    is wrong.
    """
    session = session_of(context)
    checks = list(_iterate_checks(session))
    if as_json:
        session.output.document(json.dumps([asdict(check) for check in checks], indent=2) + "\n")
    else:
        _write_checks(session, checks)
    has_faults = any(check.condition is Condition.WRONG for check in checks)
    raise CommandExit(ERROR if has_faults else PASSED)


def _iterate_checks(session: Session) -> Iterator[Check]:
    yield check_python()
    yield check_login_file(session.login_file)
    # A doctor that tries for a minute is no use; the pauses of a real transfer are not needed here.
    quick = replace(session, retry_policy=replace(session.retry_policy, max_attempts=_MAX_ATTEMPTS))
    try:
        credentials = quick.find_credentials()
    except AssayError as error:
        yield Check(
            name="server", condition=Condition.WRONG, detail=error.message, remedy="assay login --url URL"
        )
    else:
        with quick.open_http(credentials.server_url, credentials.token) as http:
            yield from iterate_server_checks(http, credentials)
    yield from iterate_local_checks()


def _write_checks(session: Session, checks: list[Check]) -> None:
    table = make_table(("check", "", "found"))
    for check in checks:
        table.add_row(
            safe(check.name), safe(check.condition.value, _STYLES[check.condition]), safe(check.detail)
        )
    session.output.result(table)
    for check in checks:
        if check.condition is Condition.WRONG:
            session.output.result(safe(f"{check.name}: {check.remedy or check.detail}", "bold"))
