"""When and how long to wait before a request is sent again."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Exponential backoff with equal jitter (AWS Architecture Blog, "Exponential Backoff And Jitter", 2015).

    Attributes:
        max_attempts: Attempts in all, at least 1.
        base_delay_seconds: Upper bound of the first pause; doubles with each further one.
        max_delay_seconds: Bound of every pause of our own choice.
        max_retry_after_seconds: A server that asks for longer than this is not waited for.
        sleep: Called with seconds; tests replace it.
        generator: Source of the jitter.
    """

    max_attempts: int = 7
    base_delay_seconds: float = 0.5
    max_delay_seconds: float = 20.0
    max_retry_after_seconds: float = 120.0
    sleep: Callable[[float], None] = time.sleep
    generator: random.Random = random.SystemRandom()  # noqa: RUF009 - stateless: it reads the system's entropy

    def pause_seconds(self, attempt: int, retry_after_seconds: float | None) -> float | None:
        """Return how long to wait after attempt number ``attempt`` (from 1), or None to give up."""
        if attempt >= self.max_attempts:
            return None
        if retry_after_seconds is not None:
            return retry_after_seconds if retry_after_seconds <= self.max_retry_after_seconds else None
        bound = min(self.max_delay_seconds, self.base_delay_seconds * 2.0 ** (attempt - 1))
        # Half fixed, half random: the pauses still spread out, and none is so short that it is no pause.
        return bound / 2 + self.generator.uniform(0.0, bound / 2)


def read_retry_after(value: str | None, *, now: datetime | None = None) -> float | None:
    """Return the seconds that a Retry-After header asks for (RFC 9110 section 10.2.3), None when it says
    nothing.

    Args:
        value: The header: whole seconds or an HTTP date.
        now: Present time with zone, for dates; None reads the clock.
    """
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text)
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, (moment - (now or datetime.now(UTC))).total_seconds())
