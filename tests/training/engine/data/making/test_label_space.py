from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.training.engine.data.making.sets import load, small
from training.engine.data.making.label_space import LabelSpace, draw_combinations
from training.engine.data.making.template_reading import read_template_set
from training.engine.errors import DataInvalid

TICKETS = LabelSpace(load("tickets"))


def wide() -> LabelSpace:
    raw = small(answer=["colour", "size", "name", "code"])
    raw["templates"][0]["text"] = "{start} {thing} {size} {n} {c}"
    raw["slots"]["n"] = {"label": "name", "values": [f"name {number}" for number in range(100)]}
    raw["slots"]["c"] = {"label": "code", "values": [f"code {number}" for number in range(60)]}
    return LabelSpace(read_template_set(raw))


def test_options_and_rules() -> None:
    labels = {"problem": '"login"', "urgency": '"normal"', "module": '"web"', "wants_call": "false"}
    assert [value.text for value in TICKETS.options("place", labels)] == ["the web portal", "the website"]
    assert TICKETS.carried["complaint"] == {"problem", "module"}
    assert TICKETS.derive(labels)["action"] == '"unlock"'
    assert TICKETS.derive({**labels, "urgency": '"high"'})["action"] == '"escalate"'
    assert TICKETS.derive({**labels, "problem": '"crash"'})["action"] == '"fix"'


def test_combinations_by_hand() -> None:
    # 3 problems x 2 modules x 2 urgencies x 2 wishes, less 2 excluded ones.
    assert TICKETS.num_combinations == 24
    problems = Counter(TICKETS.find_problem(labels) for labels in TICKETS.combinations())
    assert problems == {"": 22, "excluded": 2}


def test_every_combination_equally_often() -> None:
    drawn = draw_combinations(TICKETS, 50, seed=1)
    counts = Counter(tuple(labels.values()) for labels in drawn)
    # 50 = 2 * 22 + 6.
    assert Counter(counts.values()) == {2: 16, 3: 6}
    assert drawn == draw_combinations(TICKETS, 50, seed=1)
    assert drawn != draw_combinations(TICKETS, 50, seed=2)


def test_fewer_examples_than_combinations_balance_each_label() -> None:
    drawn = draw_combinations(TICKETS, 12, seed=5)
    assert len({tuple(labels.values()) for labels in drawn}) == 12
    assert all(not TICKETS.find_problem(labels) for labels in drawn)
    for name, values in TICKETS.domains.items():
        counts = Counter(labels[name] for labels in drawn)
        # 12 over 2 or 3 values; exclusions may move one or two.
        assert max(counts.values()) - min(counts[value] for value in values) <= 3


def test_large_spaces_balance_each_label_exactly() -> None:
    space = wide()
    assert not space.is_enumerable  # 2 x 2 x 100 x 60 = 24,000
    drawn = draw_combinations(space, 300, seed=1)
    for name, num in (("colour", 150), ("size", 150), ("name", 3), ("code", 5)):
        assert set(Counter(labels[name] for labels in drawn).values()) == {num}


def test_labels_that_go_together_too_rarely() -> None:
    raw = small(answer=["colour", "size", "a", "b", "c"])
    raw["templates"][0]["text"] = "{start} {thing} {size} {a} {b} {c}"
    for name in "abc":
        raw["slots"][name] = {"label": name, "values": [f"{name} {number}" for number in range(40)]}
    space = LabelSpace(read_template_set(raw))
    everything = [{"a": [f"a {number}" for number in range(40)]}]
    closed = LabelSpace(read_template_set({**raw, "exclude": everything}))
    assert draw_combinations(space, 1, seed=0)
    with pytest.raises(DataInvalid) as caught:
        draw_combinations(closed, 1, seed=0)
    assert caught.value.code == "no-combination"


@given(st.integers(1, 60), st.integers(0, 5))
def test_drawn_combinations_give_examples(num: int, seed: int) -> None:
    drawn = draw_combinations(TICKETS, num, seed)
    assert len(drawn) == num
    assert all(not TICKETS.find_problem(labels) for labels in drawn)
