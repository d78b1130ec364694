from tests.training.engine.data.making.scripted import ScriptedGenerator
from training.engine.data.making.generator import Generated, Prompt
from training.engine.data.making.judging import Contest, JudgeTally, judge_contests


def shown_answers(prompt: Prompt) -> tuple[str, str]:
    lines = prompt[1].content.splitlines()
    return lines[lines.index("[Answer A]") + 1], lines[lines.index("[Answer B]") + 1]


def longest_wins(prompt: Prompt) -> str:
    first, second = shown_answers(prompt)
    return "A" if len(first) > len(second) else "B" if len(second) > len(first) else "TIE"


def test_both_orders_are_asked_in_one_call() -> None:
    judge = ScriptedGenerator(longest_wins)
    (result,) = judge_contests(judge, [Contest(question="q", answers=("x", "yyy", "zz"))])
    (call,) = judge.calls
    assert [shown_answers(prompt) for prompt in call] == [
        ("x", "yyy"), ("yyy", "x"), ("x", "zz"), ("zz", "x"), ("yyy", "zz"), ("zz", "yyy"),
    ]  # fmt: skip
    # Wins out of two pairs: none, both, one.
    assert result.scores == (0.0, 1.0, 0.5)
    assert result.tally == JudgeTally(
        num_pairs=3, num_decided=3, num_votes=6, num_votes_for_first=3, num_votes_for_second=3
    )


def test_a_liking_for_the_first_place_decides_nothing() -> None:
    judge = ScriptedGenerator(lambda prompt: "A")
    (result,) = judge_contests(judge, [Contest(question="q", answers=("x", "yyy"))])
    assert result.scores == (0.5, 0.5)
    assert result.tally == JudgeTally(num_pairs=1, num_order_conflicts=1, num_votes=2, num_votes_for_first=2)


def test_replies_that_are_no_vote_are_ties_and_are_counted() -> None:
    def reply(prompt: Prompt) -> str:
        return "A good answer is B" if shown_answers(prompt)[0] == "x" else " **a**.\n"

    (result,) = judge_contests(ScriptedGenerator(reply), [Contest(question="q", answers=("x", "yyy"))])
    # "**a**" is a vote for yyy; the other order gave none, so the pair is not decided.
    assert result.scores == (0.5, 0.5)
    assert result.tally == JudgeTally(num_pairs=1, num_votes=2, num_votes_for_first=1, num_unparsable=1)


def test_one_tie_and_one_vote_is_no_decision() -> None:
    judge = ScriptedGenerator(lambda prompt: "平局" if shown_answers(prompt)[0] == "x" else "答案A")
    (result,) = judge_contests(judge, [Contest(question="q", answers=("x", "yyy"))])
    assert (result.scores, result.tally.num_decided, result.tally.num_unparsable) == ((0.5, 0.5), 0, 0)


def test_equal_answers_are_not_asked_about() -> None:
    judge = ScriptedGenerator(longest_wins)
    contests = [
        Contest(question="q", answers=("x", "x")),
        Contest(question="r", answers=("x", "zz", "x")),
    ]
    same, mixed = judge_contests(judge, contests)
    assert (same.scores, same.tally) == ((0.5, 0.5), JudgeTally())
    # zz wins both pairs; each x loses one and ties one: (0 + 0.5) / 2.
    assert mixed.scores == (0.25, 1.0, 0.25)
    assert sum((same.tally, mixed.tally), JudgeTally()).to_json()["num_pairs"] == 2


def test_a_vote_that_ran_on_is_still_one_word() -> None:
    judge = ScriptedGenerator(lambda prompt: Generated("Answer B", is_complete=False))
    (result,) = judge_contests(judge, [Contest(question="q", answers=("x", "y"))])
    assert result.tally.num_votes_for_second == 2


def test_no_contest_is_no_call() -> None:
    judge = ScriptedGenerator(longest_wins)
    assert judge_contests(judge, []) == ()
    assert judge.calls == []
