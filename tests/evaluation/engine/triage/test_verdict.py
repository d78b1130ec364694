"""The verdict out of counts that are planted by hand."""

import pytest

from evaluation.engine.triage.kinds import AMBIGUOUS, CORRECT, TREATMENT_OF, FailureKind, Outcome, Treatment
from evaluation.engine.triage.verdict import Advice, SortedSample, TriageVerdict, reach_verdict

KINDS = {"f": "format", "s": "style", "u": "unknown-fact", "c": "calculation", "m": "missing-capability"}


def verdict_of(letters: str, *, confirmed: dict[int, str] | None = None) -> TriageVerdict:
    """`.` passed, `a` ambiguous, `?` unjudged, else the first letter of the kind."""
    words = confirmed or {}
    samples = []
    for number, letter in enumerate(letters):
        outcome = {".": Outcome.PASSED, "?": Outcome.UNJUDGED}.get(letter, Outcome.FAILED)
        kind = AMBIGUOUS if letter == "a" else KINDS.get(letter)
        word = words.get(number)
        samples.append(SortedSample(sample_id=f"s{number}", outcome=outcome, kind=kind, confirmed=word))
    return reach_verdict(samples)


@pytest.mark.parametrize(
    ("letters", "advice"),
    [
        ("." * 20, Advice.PROMPT_IS_ENOUGH),
        ("." * 18 + "fm", Advice.PROMPT_IS_ENOUGH),  # 2 of 20 is the tenth that is allowed
        ("." * 18 + "aa", Advice.PROMPT_IS_ENOUGH),  # whatever they are, they are few
        ("." * 18 + "?a", Advice.PROMPT_IS_ENOUGH),
        ("." * 17 + "ffs", Advice.FINE_TUNE),
        ("." * 12 + "fffsssuu", Advice.FINE_TUNE),  # 6 of 8
        ("." * 12 + "uuuuuufc", Advice.RETRIEVAL),
        ("." * 12 + "ccccccfu", Advice.CODE_OR_RULES),
        ("." * 12 + "mmmmmmfu", Advice.OTHER_BASE),
        ("." * 12 + "ffffuuuu", Advice.MIXED),  # half and half
        ("." * 10 + "ffffuuuccc", Advice.MIXED),  # 40, 30 and 30 %
        ("." * 12 + "ffffaaaa", Advice.UNDECIDED),  # 4 of 8 are ambiguous
        ("." * 12 + "ffff????", Advice.UNDECIDED),
        ("." * 14 + "ffffaa", Advice.FINE_TUNE),  # 2 of 6 is not more than a third
        ("?" * 20, Advice.UNDECIDED),
        ("f" * 9, Advice.UNDECIDED),  # too few samples
        ("f" * 10, Advice.FINE_TUNE),
    ],
)
def test_advice(letters: str, advice: Advice) -> None:
    assert verdict_of(letters).advice is advice


def test_people_count_before_rules() -> None:
    letters = "." * 12 + "ffffaaaa"
    assert verdict_of(letters).advice is Advice.UNDECIDED
    words = dict.fromkeys(range(12, 20), "calculation")
    verdict = verdict_of(letters, confirmed=words)
    assert (verdict.advice, verdict.is_preliminary) == (Advice.CODE_OR_RULES, False)
    assert (verdict.num_failed, verdict.num_unclear, verdict.num_unconfirmed) == (8, 0, 0)


def test_a_person_may_find_an_answer_right_or_a_passed_one_wrong() -> None:
    verdict = verdict_of("." * 17 + "???", confirmed={17: CORRECT, 18: CORRECT, 19: CORRECT})
    assert (verdict.advice, verdict.num_failed, verdict.is_preliminary) == (Advice.PROMPT_IS_ENOUGH, 0, False)
    verdict = verdict_of("." * 20, confirmed=dict.fromkeys(range(5), "style"))
    assert (verdict.advice, verdict.num_failed) == (Advice.FINE_TUNE, 5)


def test_it_is_preliminary_until_every_failure_is_confirmed() -> None:
    verdict = verdict_of("." * 16 + "ffff", confirmed={16: "format", 17: "format", 18: "format"})
    assert (verdict.is_preliminary, verdict.num_unconfirmed) == (True, 1)
    assert "Preliminary: 1 sample not confirmed" in verdict.summary


def test_shares_and_reasons_of_a_mixed_verdict() -> None:
    verdict = verdict_of("." * 10 + "fffsuuuccm")
    assert verdict.advice is Advice.MIXED
    rows = [(share.treatment, share.num_failures, share.is_part) for share in verdict.shares]
    # 4, 3, 2 and 1 of 10; one failure is no part.
    assert rows == [
        (Treatment.FINE_TUNE, 4, True),
        (Treatment.RETRIEVAL, 3, True),
        (Treatment.CODE_OR_RULES, 2, True),
        (Treatment.OTHER_BASE, 1, False),
    ]
    assert verdict.shares[0].kinds == {"format": 3, "style": 1}
    assert verdict.shares[0].sample_ids == ("s10", "s11", "s12", "s13")
    assert all(share.reason for share in verdict.shares)
    # Wilson's 95 % interval of 10 of 20, by the closed form.
    assert verdict.failed_interval == pytest.approx((0.2993, 0.7007), abs=1e-4)
    assert verdict.to_json()["advice"] == "mixed"


def test_the_treatments_are_the_missions() -> None:
    assert {kind.value: treatment.value for kind, treatment in TREATMENT_OF.items()} == {
        "format": "fine-tune",
        "style": "fine-tune",
        "unknown-fact": "retrieval",
        "calculation": "code-or-rules",
        "missing-capability": "other-base",
    }
    assert set(KINDS.values()) == set(FailureKind)


def test_no_samples_are_no_verdict() -> None:
    with pytest.raises(ValueError, match="needs samples"):
        reach_verdict([])
