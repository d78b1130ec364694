"""Following a submission or run to its end on the display, and what to say when that is cut short."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from client.api import AssayApi
from client.cli.display import make_display
from client.cli.program import CommandExit
from client.cli.session import Session
from client.errors import WaitTimeoutError
from client.exit_codes import INTERRUPTED
from client.models import JobProgress, Submission
from client.run_models import Run
from client.waiting import wait_until_final

T = TypeVar("T", Submission, Run)


@contextmanager
def _told_how_to_go_on(session: Session, advice: str) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt:
        session.output.notice(f"Stopped waiting; the server goes on. {advice}", "yellow")
        raise CommandExit(INTERRUPTED) from None
    except WaitTimeoutError as error:
        raise WaitTimeoutError(error.code, f"{error.message} The server goes on. {advice}") from error


def follow_submission(
    session: Session, api: AssayApi, submission_id: str, *, timeout_seconds: float | None
) -> Submission:
    """Wait for a submission's verdict and show progress meanwhile.

    Raises:
        WaitTimeoutError: No verdict in time; the message says how to go on.
        CommandExit: Ctrl-C, after saying how to go on.
    """
    with _told_how_to_go_on(session, f"Go on with: assay wait {submission_id}"):
        return _follow(
            session,
            lambda: api.get_submission(submission_id),
            is_final=lambda submission: submission.is_final,
            progress_of=lambda submission: (submission.state, submission.current_job),
            timeout_seconds=timeout_seconds,
        )


def follow_run(
    session: Session, fetch: Callable[[], Run], *, advice: str, timeout_seconds: float | None
) -> Run:
    """Wait for the end of a baseline or training run and show progress meanwhile.

    Args:
        session: The program's run.
        fetch: Asks the server for the run.
        advice: How to go on when the wait is cut short.
        timeout_seconds: Longest wait, or None.

    Raises:
        WaitTimeoutError: No end in time.
        CommandExit: Ctrl-C, after saying how to go on.
    """
    with _told_how_to_go_on(session, advice):
        return _follow(
            session,
            fetch,
            is_final=lambda run: run.is_final,
            progress_of=lambda run: (run.state, run.current_job),
            timeout_seconds=timeout_seconds,
        )


def _follow(
    session: Session,
    fetch: Callable[[], T],
    *,
    is_final: Callable[[T], bool],
    progress_of: Callable[[T], tuple[str, JobProgress | None]],
    timeout_seconds: float | None,
) -> T:
    with make_display(session.output) as display:
        return wait_until_final(
            fetch,
            is_final=is_final,
            on_state=lambda state: display.show_job(*progress_of(state)),
            on_outage=lambda reason: display.note(f"{reason} Still waiting."),
            settings=replace(session.wait_settings, timeout_seconds=timeout_seconds),
        )
