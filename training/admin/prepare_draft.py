"""What a person is putting together on the page that prepares raw data, between two requests."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.http import QueryDict

from registry.errors import Fault
from training.admin.recipe_texts import Texts, find_reason_not_to_show, recipe_of_texts, texts_of_recipe
from training.engine.data.recipe import Recipe
from training.engine.errors import ConfigInvalid
from training.models import DataPreparation
from training.services.dataset_lookups import config_faults
from training.services.preparation_requests import PreparationRequest

REQUEST_TEXTS: Final = ("name", "general", "unchanged", "base_model")
"""Fields of the form that are no part of the recipe."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A request for a preparation in the making.

    Attributes:
        base: The whole recipe that the form began with; it holds what no field shows.
        texts: What stands in the fields.
        evaluation_sets: "name@number" of those that are chosen.
        recipe_text: What stands in the box with the recipe as JSON.
        faults: What is wrong with it, as far as was looked.
        is_json_shown: Whether the box is open.
    """

    base: Mapping[str, Any]
    texts: Texts
    evaluation_sets: tuple[str, ...] = ()
    recipe_text: str = ""
    faults: tuple[Fault, ...] = field(default=())
    is_json_shown: bool = False

    @classmethod
    def of_recipe(
        cls, recipe: Mapping[str, Any], texts: Mapping[str, str], evaluation_sets: Sequence[str] = ()
    ) -> "Draft":
        """A draft that begins with a whole recipe; `texts` are the fields that are no part of it."""
        return cls(
            base=recipe,
            texts={**texts_of_recipe(recipe), **texts},
            evaluation_sets=tuple(evaluation_sets),
            recipe_text=format_recipe(recipe),
        )

    @classmethod
    def of_preparation(cls, preparation: DataPreparation) -> "Draft":
        """A draft of the same preparation again, to be changed."""
        chosen = {
            "name": preparation.name,
            "general": str(preparation.general or ""),
            "unchanged": str(preparation.unchanged or ""),
            "base_model": str(preparation.base_model or ""),
        }
        sets = [str(item) for item in preparation.evaluation_sets.all()]
        return cls.of_recipe(preparation.recipe, chosen, sets)

    @classmethod
    def of_form(cls, sent: QueryDict) -> "Draft":
        """What was sent, unchecked; a base that is none is replaced by the default recipe."""
        base, _ = read_recipe(sent.get("base", ""))
        return cls(
            base=default_recipe() if base is None else base,
            texts={name: value for name, value in sent.items() if isinstance(value, str)},
            evaluation_sets=tuple(str(item) for item in sent.getlist("evaluation_sets")),
            recipe_text=sent.get("recipe_text", ""),
        )

    @property
    def reason_not_shown(self) -> str:
        """Why the fields cannot show the recipe; "" when they can."""
        return find_reason_not_to_show(self.base)

    def recipe(self) -> dict[str, Any]:
        """The recipe that the fields say, unchecked."""
        return recipe_of_texts(self.texts, self.base)

    def with_json_from_fields(self) -> "Draft":
        """The draft with the box saying what the fields say, or with their faults."""
        recipe, faults = read_recipe(json.dumps(self.recipe()))
        if recipe is None:
            return replace(self, faults=faults)
        return replace(self, recipe_text=format_recipe(recipe), base=recipe, is_json_shown=True)

    def with_fields_from_json(self) -> "Draft":
        """The draft with the fields saying what the box says, or with its faults."""
        recipe, faults = read_recipe(self.recipe_text)
        if recipe is None:
            return replace(self, faults=faults, is_json_shown=True)
        kept = {name: self.texts.get(name, "") for name in REQUEST_TEXTS}
        return Draft.of_recipe(recipe, kept, self.evaluation_sets)

    def request(self, raw_data: str, recipe: Mapping[str, Any]) -> PreparationRequest:
        """The request, with the recipe of the fields or of the box."""
        return PreparationRequest(
            name=self.texts.get("name", "").strip(),
            raw_data=raw_data,
            recipe=recipe,
            general=self.texts.get("general") or None,
            unchanged=self.texts.get("unchanged") or None,
            evaluation_sets=self.evaluation_sets,
            base_model_name=self.texts.get("base_model") or None,
        )


def default_recipe() -> dict[str, Any]:
    """All steps and checks, and a holdout set of a tenth, for training data."""
    return Recipe.from_json({"role": "train", "split": {"holdout_fraction": 0.1}}).to_json()


def format_recipe(recipe: Mapping[str, Any]) -> str:
    """The recipe as it stands in the box."""
    return json.dumps(recipe, indent=2, ensure_ascii=False)


def read_recipe(text: str) -> tuple[dict[str, Any] | None, tuple[Fault, ...]]:
    """The whole recipe of a text, defaults filled in; None, with the faults, when it is none."""
    try:
        value = json.loads(text)
        if not isinstance(value, dict):
            raise ValueError("A JSON object is expected.")
        return Recipe.from_json(value).to_json(), ()
    except ConfigInvalid as error:
        return None, tuple(config_faults(error, below="/recipe"))
    except (ValueError, RecursionError) as error:
        message = f"The recipe is no JSON: {error}"
        return None, (Fault(code="recipe-not-json", message=message, where="/recipe"),)
