"""Rules of the small experiment: does the loss fall, and are the answers in order? No torch here."""

import json
import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean, stdev
from typing import Final

from training.engine.data.checks.template_tokens import find_special_tokens
from training.engine.mini.report import MiniCheck, MiniSample, check, joined

MIN_FALL_FRACTION: Final = 0.1
"""Least fall of the loss, as a part of where it began: a working pipeline loses more than half within its
first steps (guide 4.3); a tenth is what the noise of small batches does not give."""
SURE: Final = 3.0
"""Standard errors by which the fall must exceed the noise of the steps."""
END_FRACTION: Final = 0.1
MIN_STEPS: Final = 6
_REPEATED_WORDS: Final = 4
_MAX_REPEATS: Final = 4


def judge_loss(losses: Sequence[float]) -> MiniCheck:
    """Return whether the loss fell: the mean of the last tenth of the steps against that of the first tenth.

    Args:
        losses: Mean loss per trained token of each step, in nats.
    """
    code = "loss-falls"
    if len(losses) < MIN_STEPS:
        return check(code, False, "", f"{len(losses)} steps are too few to see whether the loss falls.")
    size = max(3, round(END_FRACTION * len(losses)))
    first, last = losses[:size], losses[-size:]
    fall = fmean(first) - fmean(last)
    noise = math.sqrt((stdev(first) ** 2 + stdev(last) ** 2) / size)
    words = f"from {fmean(first):.3f} to {fmean(last):.3f} in {len(losses)} steps (noise {noise:.3f})"
    is_falling = fall >= MIN_FALL_FRACTION * fmean(first) and fall > SURE * noise
    return check(code, is_falling, f"The loss falls {words}.", f"The loss does not fall clearly: {words}.")


def judge_samples(samples: Sequence[MiniSample]) -> tuple[MiniCheck, ...]:
    """Return what the answers of the trained model show.

    Args:
        samples: At least one.
    """
    return (
        _all("answers-end", samples, [not item.has_ended for item in samples], "never come to an end"),
        _all("answers-not-empty", samples, [not item.answer.strip() for item in samples], "are empty"),
        _all(
            "no-template-tokens",
            samples,
            [bool(find_special_tokens(item.answer)) for item in samples],
            "hold marks of a chat template",
        ),
        _all(
            "no-repetition",
            samples,
            [repeats_itself(item.answer) for item in samples],
            "repeat a phrase over and over",
        ),
        *_judge_json(samples),
    )


def repeats_itself(text: str) -> bool:
    """Whether four words in a row come more than four times and make up most of a text.

    Texts without blanks are judged by their characters, eight in a row.
    """
    words = text.split()
    units, size = (words, _REPEATED_WORDS) if len(words) >= _REPEATED_WORDS else (list(text), 8)
    grams = Counter(tuple(units[start : start + size]) for start in range(len(units) - size + 1))
    if not grams:
        return False
    _, count = grams.most_common(1)[0]
    return count > _MAX_REPEATS and count * size > len(units) / 2


def _judge_json(samples: Sequence[MiniSample]) -> tuple[MiniCheck, ...]:
    structured = [item for item in samples if _is_json(item.reference)]
    if not structured:
        return ()
    broken = [not _is_json(item.answer) for item in structured]
    return (_all("answers-parse", structured, broken, "are no strict JSON"),)


def _all(code: str, samples: Sequence[MiniSample], is_bad: Sequence[bool], what: str) -> MiniCheck:
    """Half of so few samples may be bad luck of a short training; more is a pattern."""
    bad = [number for number, value in enumerate(is_bad, start=1) if value]
    is_good = len(bad) <= len(samples) / 2
    some = f"{len(bad)} of {len(samples)} answers {what}" + (f" (samples {joined(bad)})." if bad else ".")
    return check(code, is_good, some, some)


def _is_json(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict | list)
    except (ValueError, RecursionError):
        return False
