"""Does an answer try the task at all? One that does not says nothing about facts or calculations."""

from dataclasses import dataclass
from typing import Final

from evaluation.engine.triage.judging import JudgedAnswer
from evaluation.engine.triage.wordings import is_admission, is_refusal, script_of, terms_of

MIN_TERMS: Final = 5
"""An answer of fewer terms says too little to be off the topic."""

WITHOUT_ATTEMPT: Final = 0.3
"""Confidence of what wrong values say when the answer does not try."""


@dataclass(frozen=True, slots=True)
class NoAttempt:
    """Why an answer does not count as an attempt: stable code, confidence (0-1), and what was seen."""

    code: str
    confidence: float
    message: str


def find_no_attempt(judged: JudgedAnswer) -> NoAttempt | None:
    """Say why an answer is no attempt: empty, looping, refusing, in another language, off the topic.

    None for an attempt, however wrong; an answer that says that it does not know is one.
    """
    text = judged.answer.text
    if not text.strip():
        return NoAttempt("empty", 0.95, "the answer is empty")
    if judged.answer.behaviour.repetition:
        return NoAttempt("repetition", 0.85, "the answer repeats a phrase over and over")
    if judged.is_content_right:
        return None
    if is_admission(text):
        return None
    if is_refusal(text):
        return NoAttempt("refusal", 0.85, "the answer refuses the task")
    wanted, found = script_of(judged.sample.reference), script_of(text)
    if judged.parsed is None and wanted is not None and found is not None and wanted != found:
        return NoAttempt(
            "wrong-language", 0.85, f"the answer is in {found} script, the reference in {wanted}"
        )
    if _is_off_topic(judged):
        return NoAttempt("off-topic", 0.65, "the answer shares no word with the input or the reference")
    return None


def _is_off_topic(judged: JudgedAnswer) -> bool:
    terms = terms_of(judged.answer.text)
    if len(terms) < MIN_TERMS:
        return False
    return not terms & (terms_of(judged.sample.input_text) | terms_of(judged.sample.reference))
