from collections.abc import Mapping

import pytest

from evaluation.engine.backends.base import GenerationOutput
from evaluation.engine.parity import compare_outputs, count_differences, summarise_parity


def output(
    text: str, tokens: tuple[int, ...], *logprobs: Mapping[int, float], finish: str = "stop"
) -> GenerationOutput:
    return GenerationOutput(
        request_id="c",
        text=text,
        token_ids=tokens,
        finish_reason="stop" if finish == "stop" else "length",
        num_prompt_tokens=1,
        logprobs=tuple(logprobs) or None,
    )


SAME = {7: -0.1}


def test_equal_text_agrees() -> None:
    comparison = compare_outputs("c", output("a", (7, 2)), output("a", (7, 2)))
    assert (comparison.agreement, comparison.position, comparison.gap_nats) == ("agree", None, None)


def test_equal_json_agrees_whatever_its_spacing_and_order() -> None:
    first, second = output('{"a": 1, "b": 2}', (1,)), output('{"b":2,"a":1}', (3,))
    assert compare_outputs("c", first, second).agreement == "agree"


@pytest.mark.parametrize(
    ("first_gap", "second_gap", "agreement"),
    [(0.1, 0.2, "near_tie"), (0.5, 0.5, "near_tie"), (0.1, 0.6, "diverged"), (3.0, 0.0, "diverged")],
)
def test_the_larger_gap_at_the_first_differing_token_decides(
    first_gap: float, second_gap: float, agreement: str
) -> None:
    first = output("x y", (7, 8), SAME, {8: -0.5, 9: -0.5 - first_gap})
    second = output("x z", (7, 9), SAME, {9: -0.5, 8: -0.5 - second_gap})
    comparison = compare_outputs("c", first, second, near_tie_nats=0.5)
    assert comparison.agreement == agreement
    assert comparison.position == 1
    assert comparison.gap_nats == pytest.approx(max(first_gap, second_gap))


def test_a_token_outside_the_likeliest_ones_diverges() -> None:
    first = output("x y", (7, 8), SAME, {8: -0.1, 5: -2.0})
    second = output("x z", (7, 9), SAME, {9: -0.1, 8: -0.2})
    comparison = compare_outputs("c", first, second)
    assert (comparison.agreement, comparison.gap_nats) == ("diverged", None)


def test_without_logprobs_a_difference_diverges() -> None:
    assert compare_outputs("c", output("a", (1,)), output("b", (2,))).agreement == "diverged"


def test_stopping_earlier_is_a_difference_at_the_stop_token() -> None:
    stopped = output("x", (7, 2), SAME, {2: -0.6, 8: -0.8})
    went_on = output("x y", (7, 8), SAME, {8: -0.6, 2: -0.7}, finish="length")
    assert compare_outputs("c", stopped, went_on).agreement == "near_tie"


def test_summary_counts_and_names() -> None:
    agree = compare_outputs("a", output("a", (1,)), output("a", (1,)))
    diverged = compare_outputs("d", output("a", (1,)), output("b", (2,)))
    summary = summarise_parity(
        [agree, diverged], noise_floor=[agree], num_differ_from_base=1, num_refused=1, near_tie_nats=0.5
    )
    assert {
        key: summary[key] for key in ("num_compared", "num_agree", "num_diverged", "noise_floor_diverged")
    } == {
        "num_compared": 2,
        "num_agree": 1,
        "num_diverged": 1,
        "noise_floor_diverged": 0,
    }
    assert summary["diverged"] == ["d"]


def test_an_unmeasured_noise_floor_is_null() -> None:
    summary = summarise_parity(
        [], noise_floor=None, num_differ_from_base=None, num_refused=0, near_tie_nats=0.5
    )
    assert summary["noise_floor_diverged"] is None


def test_differences_from_the_base_leave_near_ties_out() -> None:
    tie = output("a", (7, 8), SAME, {8: -0.7, 9: -0.8})
    apart = output("b", (7, 8), SAME, {8: -0.1, 9: -3.0})
    outside = output("c", (5,), {5: -0.1, 6: -4.0})
    outputs = {"same": tie, "tie": tie, "apart": apart, "outside": outside}
    base = {"same": [7, 8], "tie": [7, 9], "apart": [7, 9], "outside": [4], "other": [1]}
    assert count_differences(outputs, base, near_tie_nats=0.5) == 2


def test_count_differences_needs_every_example() -> None:
    assert count_differences({"a": output("a", (1,))}, {}) is None
    assert count_differences({}, {"a": (1,)}) is None
