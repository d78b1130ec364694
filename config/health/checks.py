"""The single checks behind `/health/ready`. Details name no path, address or secret: the page needs no
token.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import redis
from django.db import DatabaseError, connection

from config.presence import Presence, connect_redis, list_present
from registry.choices import JobQueue
from registry.services.artifacts import get_store


@dataclass(frozen=True, slots=True)
class Check:
    """The outcome of one check, with a short text for people."""

    is_ok: bool
    detail: str


def run_checks() -> Mapping[str, Check]:
    """Runs every check, in the order in which they build on each other."""
    present = _find_present()
    return {
        "database": check_database(),
        "broker": check_broker(),
        "store": check_store(),
        "scheduler": check_scheduler(present),
        "workers": check_workers(present),
    }


def check_database() -> Check:
    """The database answers a query."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return Check(False, "The database does not answer.")
    return Check(True, f"{connection.vendor} answers.")


def check_broker() -> Check:
    """The broker answers a PING."""
    try:
        client = connect_redis()
        client.ping()
        client.close()
    except (redis.RedisError, ValueError):
        return Check(False, "The broker does not answer.")
    return Check(True, "The broker answers.")


def check_store() -> Check:
    """The folder of the artifact store, which is made with the first file, can be written to."""
    folder = get_store().root
    while not folder.exists():
        folder = folder.parent
    if not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
        return Check(False, "The artifact store cannot be written to.")
    return Check(True, "The artifact store can be written to.")


def check_scheduler(present: list[Presence] | None) -> Check:
    """At least one scheduler gave a sign of life."""
    if present is None:
        return Check(False, "Unknown: the broker does not answer.")
    names = [presence.name for presence in present if presence.role == "scheduler"]
    return Check(bool(names), f"Running: {', '.join(names)}." if names else "No scheduler is running.")


def check_workers(present: list[Presence] | None) -> Check:
    """Every queue has at least one worker that gave a sign of life."""
    if present is None:
        return Check(False, "Unknown: the broker does not answer.")
    workers = [presence for presence in present if presence.role == "worker"]
    served = {queue for worker in workers for queue in worker.queues}
    unserved = sorted(set(JobQueue.values) - served)
    if unserved:
        return Check(False, f"No worker takes jobs from: {', '.join(unserved)}.")
    return Check(True, f"Running: {', '.join(worker.name for worker in workers)}.")


def _find_present() -> list[Presence] | None:
    try:
        return list_present()
    except (redis.RedisError, ValueError):
        return None
