import random

import pytest

from training.engine.mini.judging import judge_loss, judge_samples, repeats_itself
from training.engine.mini.report import MiniReport, MiniSample
from training.engine.preflight.report import CheckStatus


def sample(answer: str, *, reference: str = '{"a": 1}', has_ended: bool = True) -> MiniSample:
    return MiniSample(prompt="Ticket", answer=answer, reference=reference, has_ended=has_ended)


def failed(*samples: MiniSample) -> set[str]:
    return {item.code for item in judge_samples(samples) if item.status is CheckStatus.FAILED}


def noisy(start: float, end: float, num: int = 100) -> list[float]:
    generator = random.Random(1)
    return [start + (end - start) * i / num + generator.gauss(0, 0.05) for i in range(num)]


@pytest.mark.parametrize(
    ("losses", "status"),
    [
        (noisy(2.0, 0.5), CheckStatus.PASSED),
        (noisy(2.0, 2.0), CheckStatus.FAILED),
        (noisy(2.0, 1.9), CheckStatus.FAILED),  # 5 %: less than the tenth that is wanted
        (noisy(1.0, 2.0), CheckStatus.FAILED),
        ([2.0, 0.1], CheckStatus.FAILED),
        ([2.0, 1.0, 3.0, 1.5, 2.5, 0.9], CheckStatus.FAILED),  # the fall is within the noise
    ],
)
def test_only_a_clear_fall_of_the_loss_passes(losses: list[float], status: CheckStatus) -> None:
    assert judge_loss(losses).status is status


def test_sound_answers_pass() -> None:
    assert failed(*[sample('{"a": 2}')] * 5) == set()
    assert failed(sample("Guten Tag.", reference="Hallo.")) == set()


def test_each_fault_of_the_answers_is_named() -> None:
    assert failed(sample('{"a": 2}', has_ended=False)) == {"answers-end"}
    assert failed(sample(" ")) == {"answers-not-empty", "answers-parse"}
    assert failed(sample('{"a": "<|im_start|>"}')) == {"no-template-tokens"}
    assert failed(sample("so it is " * 40)) == {"no-repetition", "answers-parse"}
    assert failed(sample("It is a refund.")) == {"answers-parse"}


def test_one_bad_answer_of_five_is_no_pattern() -> None:
    good = [sample('{"a": 2}')] * 3
    assert failed(*good, sample("x"), sample("y")) == set()
    assert failed(*good[:2], *[sample("x")] * 3) == {"answers-parse"}


def test_repetition_in_both_kinds_of_scripts() -> None:
    assert repeats_itself("the invoice is wrong " * 12)
    assert repeats_itself("发票金额有误请核对" * 12)
    assert not repeats_itself("The invoice of May is wrong; please send a new one to the office in Ulm.")
    assert not repeats_itself("五月的发票有误。请重新开具并寄到乌尔姆办公室。谢谢。")
    assert not repeats_itself("")


def test_the_verdict_is_that_of_the_worst_check() -> None:
    good, bad = judge_loss(noisy(2.0, 0.5)), judge_loss([2.0])
    assert MiniReport(checks=(good,)).passed
    assert not MiniReport(checks=(good, bad)).passed
