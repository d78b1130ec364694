"""Signs of life of worker and scheduler processes: keys in Redis that expire by themselves.

A busy worker of Celery's solo pool answers no ping, so each process says by a thread of its own that it is
there.
"""

import json
import logging
import os
import threading
from collections.abc import Sequence
from dataclasses import dataclass

import redis
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

PRESENCE_TTL_SECONDS = 15
ANNOUNCE_EVERY_SECONDS = 4.0
_CONNECT_TIMEOUT_SECONDS = 2.0
_PREFIX = "assay:presence:"

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Presence:
    """One process that is there.

    Attributes:
        role: "worker" or "scheduler".
        name: Stable name of the process, such as "cpu@host".
        queues: Queues that a worker takes jobs from; empty for the scheduler.
        pid: Process id on its own machine.
    """

    role: str
    name: str
    queues: tuple[str, ...] = ()
    pid: int = 0


def connect_redis() -> "redis.Redis":
    """Opens a client of the server that also is Celery's broker; commands fail after two seconds without an
    answer.

    Raises:
        ValueError: the broker is none that speaks Redis's protocol.
    """
    url = settings.CELERY_BROKER_URL.replace("redis+socket://", "unix://", 1)
    return redis.Redis.from_url(
        url,
        socket_timeout=_CONNECT_TIMEOUT_SECONDS,
        socket_connect_timeout=_CONNECT_TIMEOUT_SECONDS,
        decode_responses=True,
        retry=Retry(NoBackoff(), retries=1),
    )


def list_present() -> list[Presence]:
    """Lists the processes that gave a sign of life within the last 15 seconds.

    Raises:
        redis.RedisError: the server does not answer.
    """
    client = connect_redis()
    try:
        keys = sorted(client.scan_iter(match=f"{_PREFIX}*", count=1000))
        values = client.mget(keys) if keys else []
    finally:
        client.close()
    return [_read(str(value)) for value in values if value is not None]


class Announcer:
    """Says every few seconds that this process is there, from a daemon thread, until it is stopped."""

    def __init__(self, *, role: str, name: str, queues: Sequence[str] = ()) -> None:
        self._presence = Presence(role=role, name=name, queues=tuple(queues), pid=os.getpid())
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="presence", daemon=True)

    def start(self) -> None:
        """Begins to announce."""
        self._thread.start()

    def stop(self) -> None:
        """Ends, and takes the sign of life away if the server answers."""
        self._stopped.set()
        self._thread.join(timeout=2 * _CONNECT_TIMEOUT_SECONDS)

    def _run(self) -> None:
        client = connect_redis()
        key = f"{_PREFIX}{self._presence.role}:{self._presence.name}"
        is_known = True
        while not self._stopped.is_set():
            try:
                client.set(key, _write(self._presence), ex=PRESENCE_TTL_SECONDS)
                is_known = True
            except redis.RedisError as error:
                if is_known:
                    logger.warning("This process cannot announce itself: %s", error)
                is_known = False
            self._stopped.wait(ANNOUNCE_EVERY_SECONDS)
        try:
            client.delete(key)
        except redis.RedisError:
            logger.info("The sign of life of %s will expire by itself.", self._presence.name)
        client.close()


def _write(presence: Presence) -> str:
    return json.dumps(
        {"role": presence.role, "name": presence.name, "queues": list(presence.queues), "pid": presence.pid}
    )


def _read(text: str) -> Presence:
    value = json.loads(text)
    return Presence(
        role=value["role"], name=value["name"], queues=tuple(value["queues"]), pid=int(value["pid"])
    )
