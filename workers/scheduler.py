"""What must happen now and then, whoever asked for it: recovery, lost messages, next steps, cleaning up.

Every step is idempotent and derived from the database, so several schedulers, or a killed one, do no harm.
"""

import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from django.conf import settings
from django.db import close_old_connections
from django.utils import timezone

from evaluation.services import pipeline, triages
from registry.selectors.jobs import list_active_job_ids
from registry.services.actors import SYSTEM
from registry.services.jobs import requeue_lapsed_jobs, resend_waiting_jobs
from registry.services.uploads import expire_uploads
from training.services import preparations
from training.services import runs as training_runs
from workers import output_diagnosis
from workers.workdir import remove_old_work_folders

logger = logging.getLogger(__name__)
HOUSEKEEPING_EVERY_TURNS = 100
"""Files are looked through this much more seldom than jobs (every five minutes at the default interval)."""


def run_turn(*, turn: int) -> int:
    """Does one round; returns how many steps failed.

    A step that fails is logged and tried again at the next turn: it must not keep the others from being done.

    Args:
        turn: Number of the round, from 0; housekeeping is done at every hundredth.
    """
    steps = {**_job_steps(turn), **(_housekeeping_steps() if turn % HOUSEKEEPING_EVERY_TURNS == 0 else {})}
    num_failed = 0
    for name, step in steps.items():
        try:
            step()
        except Exception:  # Whatever it is, the other steps go on; see above.
            logger.exception("The step %r failed.", name)
            num_failed += 1
    close_old_connections()
    return num_failed


def _job_steps(turn: int) -> Mapping[str, Callable[[], object]]:
    return {
        "requeue lapsed jobs": _requeue_lapsed_jobs,
        "send waiting jobs": lambda: _send_waiting_jobs(is_first=turn == 0),
        "advance evaluation runs": pipeline.advance_all,
        "reconcile triages": triages.reconcile_all,
        "reconcile training runs": training_runs.reconcile_all,
        "reconcile data preparations": preparations.reconcile_all,
    }


def _requeue_lapsed_jobs() -> None:
    _count("lapsed jobs put back", requeue_lapsed_jobs(now=timezone.now()))


def _send_waiting_jobs(*, is_first: bool) -> None:
    # After a start nothing is known of the broker's past: jobs need not wait to be missed.
    options = {"min_wait_seconds": 0.0} if is_first else {}
    _count("messages sent again", resend_waiting_jobs(now=timezone.now(), **options))


def _housekeeping_steps() -> Mapping[str, Callable[[], object]]:
    return {
        "expire uploads": lambda: expire_uploads(now=timezone.now(), actor=SYSTEM),
        "remove old work folders": _remove_work_folders,
        "diagnose recent evaluations": output_diagnosis.diagnose_recent,
    }


def _remove_work_folders() -> None:
    num_removed = remove_old_work_folders(
        root=Path(settings.WORK_ROOT),
        ttl_seconds=settings.WORK_FOLDER_TTL_SECONDS,
        keep=frozenset(str(job_id) for job_id in list_active_job_ids()),
    )
    _count("work folders removed", num_removed)


def _count(what: str, number: int) -> None:
    if number:
        logger.info("%d %s.", number, what)
