"""Cues and labelling rules of the ticket demo task, on texts that are in none of its sets."""

import pytest

from tests.examples.tickets_modules import load_module

cues = load_module("cues")
labelling = load_module("labelling")

MAX_CUE_WORDS = 6


def finds(cue: str, text: str) -> bool:
    return bool(cues.CueSet((cue,)).are_in(cues.prepare(text)))


@pytest.mark.parametrize(
    ("cue", "text"),
    [
        ("locked out", "I am LOCKED OUT!"),
        ("charge*", "They kept charges open."),
        ("phone|ring me|us", "ring us"),
        ("whole _ team", "the whole team"),
        ("whole _ team", "the whole sales team"),
        ("need .. today", "I need it today"),
        ("need .. today", "need one two three four five six seven eight today"),
        ("cant log", "can't log"),
        ("slow", "\uff53\uff4c\uff4f\uff57"),
        ("tres lente", "très lente"),
    ],
)
def test_a_cue_is_found(cue: str, text: str) -> None:
    assert finds(cue, text)


@pytest.mark.parametrize(
    ("cue", "text"),
    [
        ("locked out", "locked us out"),
        ("charge", "charges"),
        ("web", "webhook"),
        ("whole _ team", "the whole big sales team"),
        ("need .. today", "I need it. Today it rains"),
        ("need .. today", "need one two three four five six seven eight nine today"),
    ],
)
def test_a_cue_is_not_found(cue: str, text: str) -> None:
    assert not finds(cue, text)


def test_what_an_exception_covers_does_not_count() -> None:
    urgent = cues.CueSet(("urgent",), unless=("not urgent",))
    assert not urgent.are_in([" it is not urgent"])
    assert urgent.are_in([" it was not urgent and now it is urgent"])


def test_swapped_letters_are_put_right_only_where_a_cue_gains_by_it() -> None:
    known = cues.list_words(("calendar", "charge*"))
    assert cues.repair_swaps(" the clanedar was cahrged", known) == " the clanedar was charged"
    assert cues.repair_swaps(" the caelndar", known) == " the calendar"
    assert cues.repair_swaps(" the gardne", known) == " the gardne"


def get_labels(text: str) -> tuple[str, str, str, bool]:
    ticket = labelling.label(text)
    assert ticket is not None
    return ticket.problem_type, ticket.urgency, ticket.module, ticket.asks_for_call


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        # The first problem type that fits decides: no access before an error, an error before slowness.
        ("The website shows an error that my password is wrong.", ("login", "normal", "web", False)),
        ("The portal is slow and then it crashes.", ("crash", "normal", "web", False)),
        ("The invoice for the calendar has vanished.", ("billing", "normal", "calendar", False)),
        ("How do I find the notes that disappeared from the app?", ("data_loss", "normal", "mobile", False)),
        # So it is with urgency: a whole group before a date, a date before "can wait".
        ("Nobody can use the API, and I need it today.", ("how_to", "critical", "api", False)),
        ("The dashboard lags. I need it by tomorrow.", ("performance", "high", "reports", False)),
        ("The dashboard lags. It is not urgent at all.", ("performance", "low", "reports", False)),
        # The sentence that states the problem names the module.
        ("I like the reports. The roster is slow.", ("performance", "normal", "calendar", False)),
        # A wish for an answer in writing is no wish for a call.
        ("The webhook is slow. Please do not call me.", ("performance", "normal", "api", False)),
        ("The webhook is slow. Please call me.", ("performance", "normal", "api", True)),
        # What is settled is no complaint.
        (
            "The double charge is settled. The Android app is slow.",
            ("performance", "normal", "mobile", False),
        ),
    ],
)
def test_the_written_rules(text: str, labels: tuple[str, str, str, bool]) -> None:
    if labels[0] == "how_to":
        text = f"How do I sort? {text}"
    assert get_labels(text) == labels


@pytest.mark.parametrize(
    "text", ["", "?", "Hello", "The calendar is lovely.", "It crashes.", "Write a poem about the sea."]
)
def test_no_ticket_follows_without_a_problem_and_a_module(text: str) -> None:
    assert labelling.label(text) is None


def test_a_cue_is_a_wording_and_no_message() -> None:
    sets = [
        *labelling.PROBLEM_CUES.values(),
        *labelling.URGENCY_CUES.values(),
        *labelling.MODULE_CUES.values(),
        labelling.CALL_CUES,
        labelling.SETTLED_CUES,
    ]
    for cue in [cue for cue_set in sets for cue in (*cue_set.says, *cue_set.unless)]:
        assert len(cue.split()) <= MAX_CUE_WORDS, cue


def test_the_values_are_those_of_the_labels_in_the_order_of_the_rules() -> None:
    assert tuple(labelling.PROBLEM_CUES) == labelling.PROBLEM_TYPES
    assert tuple(labelling.URGENCY_CUES) == ("critical", "high", "low")
    assert tuple(labelling.MODULE_CUES) == labelling.MODULES
