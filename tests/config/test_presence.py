"""Signs of life, on a real broker."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

from config.presence import Announcer, Presence, connect_redis, list_present
from tests.config.broker import running_broker


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_process_is_present_until_it_stops(tmp_path: Path, settings: Any) -> None:
    with running_broker(tmp_path) as url:
        settings.CELERY_BROKER_URL = url
        assert list_present() == []
        announcer = Announcer(role="worker", name="cpu@m", queues=["cpu"])
        announcer.start()
        wait_for(list_present)
        (present,) = list_present()
        assert present == Presence(role="worker", name="cpu@m", queues=("cpu",), pid=present.pid)
        # A killed process says nothing; its key goes by itself.
        client: Any = connect_redis()
        assert 0 < client.ttl("assay:presence:worker:cpu@m") <= 15
        client.close()
        announcer.stop()
        assert list_present() == []


def test_a_broker_that_is_down_is_an_error_at_once(tmp_path: Path, settings: Any) -> None:
    settings.CELERY_BROKER_URL = f"redis+socket://{tmp_path / 'absent.sock'}"
    begun = time.monotonic()
    with pytest.raises(redis.RedisError):
        list_present()
    assert time.monotonic() - begun < 2.0
