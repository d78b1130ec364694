"""A recipe goes into the fields of a form and comes back as it was."""

from typing import Any

import pytest

from training.admin.recipe_texts import (
    ON,
    find_reason_not_to_show,
    recipe_of_texts,
    text_of,
    texts_of_recipe,
    value_of,
)
from training.engine.data.recipe import Recipe

INTAKE = {
    "shape": "columns",
    "columns": {"input": "text", "answer": "structured", "group": "customer, or firm"},
    "tags": {"channel": "channel", "lang": "language"},
    "keep": ["ticket_id", "a,b"],
    "adoption": {"column": "adopted", "values": ["yes", "1"]},
    "system_prompt": "Answer in JSON,\nplease.",
    "needs_answer": True,
    "splits": ["train"],
    "limits": {"max_rows": 10},
}


def whole(**raw: Any) -> dict[str, Any]:
    return Recipe.from_json(raw).to_json()


@pytest.mark.parametrize(
    "recipe",
    [
        whole(),
        whole(role="ood", clean=[], checks=[]),
        whole(intake=INTAKE, split={"stratify_by": "answer/urgency"}, mix={"general_fraction": 0.1}),
        whole(clean=["drop_empty", {"step": "drop_duplicates", "threshold": 0.9}], seed=7),
        whole(clean=["drop_duplicates", "drop_empty"], leakage_threshold=1.0),
    ],
    ids=["default", "empty", "everything", "some steps", "another order"],
)
def test_there_and_back(recipe: dict[str, Any]) -> None:
    again = recipe_of_texts(texts_of_recipe(recipe), recipe)
    assert whole(**again) == recipe
    assert [step["step"] for step in again["clean"]] == [step["step"] for step in recipe["clean"]]


def test_what_no_field_shows_stays() -> None:
    recipe = whole(intake=INTAKE)
    changed = recipe_of_texts({**texts_of_recipe(recipe), "column__answer": ""}, recipe)
    assert changed["intake"]["limits"]["max_rows"] == 10
    assert changed["intake"]["splits"] == ["train"]
    assert changed["intake"]["columns"] == {"input": "text", "group": "customer, or firm"}


def test_switches() -> None:
    recipe = whole(clean=["drop_duplicates"], checks=[])
    texts = texts_of_recipe(recipe) | {"step__drop_empty": ON, "step__drop_duplicates": ""}
    changed = recipe_of_texts(texts | {"mix": ON, "mix__max_repeats": "2"}, recipe)
    assert [step["step"] for step in changed["clean"]] == ["drop_empty"]
    assert whole(**changed)["mix"] == {
        "general_fraction": 0.0,
        "unchanged_fraction": 0.0,
        "balance_by": None,
        "max_repeats": 2,
    }


@pytest.mark.parametrize(
    ("text", "default", "value"),
    [
        ("0.9", 0.85, 0.9),
        ("many", 0.85, "many"),
        ("", 3, None),
        (ON, False, True),
        ("", True, False),
        ("zh, en", ("zh",), ["zh", "en"]),
        ("zh，en", [], ["zh", "en"]),  # noqa: RUF001 - a Chinese keyboard's comma
        ('["a,b", "c"]', [], ["a,b", "c"]),
        ("answer/urgency", None, "answer/urgency"),
        ("mask", "drop", "mask"),
    ],
)
def test_values(text: str, default: Any, value: Any) -> None:
    assert value_of(text, default) == value


def test_lists_with_commas_are_shown_as_json() -> None:
    assert text_of(["a,b", "c"]) == '["a,b", "c"]'
    assert text_of(["a", "b"]) == "a, b"
    assert (text_of(None), text_of(0.5), text_of("x")) == ("", "0.5", "x")


def test_a_step_that_comes_twice_has_no_form() -> None:
    recipe = whole(clean=["drop_empty", "drop_duplicates", "drop_empty"])
    assert "step more than once" in find_reason_not_to_show(recipe)
    assert find_reason_not_to_show(whole()) == ""
