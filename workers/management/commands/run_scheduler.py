"""`manage.py run_scheduler`: the process that does what must happen now and then."""

import signal
import socket
import threading
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from config.presence import Announcer
from workers.scheduler import run_turn


class Command(BaseCommand):
    """Runs until SIGTERM or SIGINT."""

    help = "Puts back lost jobs, sends lost messages, starts next steps and cleans up, until SIGTERM."

    def handle(self, *args: Any, **options: Any) -> None:
        """Does a turn every few seconds until it is told to stop."""
        stopped = threading.Event()

        def stop(number: int, frame: FrameType | None) -> None:
            stopped.set()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        announcer = Announcer(role="scheduler", name=f"scheduler@{socket.gethostname()}")
        announcer.start()
        turn = 0
        while not stopped.is_set():
            run_turn(turn=turn)
            turn += 1
            stopped.wait(settings.SCHEDULER_INTERVAL_SECONDS)
        announcer.stop()
