import random

from hypothesis import given
from hypothesis import strategies as st

from tests.training.engine.data.making.sets import load, small
from training.engine.data.making.composing import ComposedText, compose_text
from training.engine.data.making.label_space import LabelSpace
from training.engine.data.making.template_reading import read_template_set

TICKETS = LabelSpace(load("tickets"))
POSSIBLE = [labels for labels in TICKETS.combinations() if not TICKETS.find_problem(labels)]


def compose_from(raw: dict[str, object], seed: int = 0, **labels: str) -> ComposedText:
    return compose_text(LabelSpace(read_template_set(raw)), labels, random.Random(seed))


def only(text: str, **more: object) -> dict[str, object]:
    """A set with one text in each slot: the result does not depend on the draw."""
    slots = {
        "thing": {"values": [{"text": "red ball", "labels": {"colour": "red"}, "keep": ["red"]}]},
        "gone": {"values": [""]},
        "sum": {"label": "sum", "values": ["ten EUR"]},
    }
    used = {name: slot for name, slot in slots.items() if "{" + name in text.lower()}
    raw: dict[str, object] = {"name": "only", "answer": ["colour"], "slots": used}
    return {**raw, "templates": [{"id": "t", "text": text}], **more}


def test_empty_values_leave_no_spaces() -> None:
    text = compose_from(only("{gone} A {thing} {gone}\n{gone} came {gone} here. {gone}"), colour='"red"').text
    assert text == "A red ball\ncame here."


def test_capitals_where_a_slot_begins_a_sentence() -> None:
    raw = only("{Thing} and {thing}. {Sum} is due.")
    composed = compose_from(raw, colour='"red"', sum='"ten EUR"')
    # What is itself the label stays as the answer has it.
    assert composed.text == "Red ball and red ball. ten EUR is due."
    assert composed.kept == {"Red": 1, "red": 1, "ten EUR": 1}


def test_kept_texts_are_counted_by_slot() -> None:
    raw = small(answer=["a", "b"], templates=[{"id": "t", "text": "From {a} to {b} and {a}."}])
    raw["slots"] = {name: {"label": name, "values": ["Ann"]} for name in "ab"}
    composed = compose_from(raw, a='"Ann"', b='"Ann"')
    assert composed.kept == {"Ann": 2}
    assert composed.find_lost("Ann wrote to Ann.") == ()
    assert composed.find_lost("Ann wrote to Anna.") == ("Ann",)
    assert composed.answer == '{"a":"Ann","b":"Ann"}'


def test_a_text_that_touches_other_letters() -> None:
    raw = small(answer=["a"], templates=[{"id": "t", "text": "It costs {a}EUR."}])
    raw["slots"] = {"a": {"label": "a", "values": ["25"]}}
    composed = compose_from(raw, a='"25"')
    assert composed.find_lost("25EUR is the price") == ()
    assert composed.find_lost("24EUR is the price") == ("25",)


def test_noise_leaves_labels_alone() -> None:
    noise = {"lower_case_fraction": 1, "drop_punctuation_fraction": 1, "swap_letters_fraction": 1}
    raw = only("Yesterday, A {Thing}. Costs 3.5 for {sum}!", noise=noise)
    seen = {compose_from(raw, seed, colour='"red"', sum='"ten EUR"').text for seed in range(40)}
    # "yesterday" is the one long word; its seven inner letters have six neighbours to swap, none equal.
    assert len(seen) == 6
    assert all(text.endswith(" a Red ball costs 3.5 for ten EUR") for text in seen)
    assert all(sorted(text.split()[0]) == sorted("yesterday") for text in seen)


@given(st.sampled_from(POSSIBLE), st.integers(0, 10_000))
def test_a_composed_text_states_its_labels(labels: dict[str, str], seed: int) -> None:
    composed = compose_text(TICKETS, labels, random.Random(seed))
    assert composed.find_lost(composed.text) == ()
    assert all(kept in composed.text for kept in composed.kept)
    assert composed.text == composed.text.strip()
    assert "  " not in composed.text
    assert compose_text(TICKETS, labels, random.Random(seed)) == composed
