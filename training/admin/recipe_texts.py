"""A recipe as the texts of a form, and back. Only form and recipe are known here, no request and no page.

A form cannot show everything that a recipe may say. So it always begins with a whole recipe: what it does not
show stays as it is.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from training.engine.data.checks.catalogue import CHECKS
from training.engine.data.cleaning.catalogue import STEPS
from training.engine.data.recipe import MixSettings, SplitSettings

Texts = dict[str, str]
"""Name of a form field to what stands in it; a switch that is off is missing or empty."""

ON: Final = "on"
_COMMA: Final = re.compile("[,\uff0c]")
COLUMN_MEANINGS: Final = (
    "input",
    "answer",
    "system",
    "history",
    "messages",
    "conversations",
    "id",
    "group",
    "category",
    "dimension",
    "reference",
    "scoring",
    "reference_source",
    "confirmed_by",
)
INTAKE_TEXTS: Final = ("format", "encoding", "delimiter", "shape")
OPTIONAL_INTAKE_TEXTS: Final = ("reference_source", "confirmed_by", "system_prompt")
FILTERS: Final = ("adoption", "rework")
SPLIT_DEFAULTS: Final[Mapping[str, Any]] = asdict(SplitSettings())
MIX_DEFAULTS: Final[Mapping[str, Any]] = asdict(MixSettings())


def find_reason_not_to_show(recipe: Mapping[str, Any]) -> str:
    """Why a form cannot show a recipe; "" when it can."""
    for section, key in (("clean", "step"), ("checks", "check")):
        names = [item[key] for item in recipe[section]]
        if len(set(names)) != len(names):
            return f"It names one {key} more than once."
    return ""


def texts_of_recipe(recipe: Mapping[str, Any]) -> Texts:
    """The fields' texts for a whole recipe (one that went through `Recipe`)."""
    return {
        "role": recipe["role"],
        "seed": str(recipe["seed"]),
        "leakage_threshold": text_of(recipe["leakage_threshold"]),
        **_texts_of_intake(recipe["intake"]),
        **_texts_of_steps(recipe["clean"]),
        **{f"check__{item['check']}": ON for item in recipe["checks"]},
        **_texts_of_part("split", recipe["split"], SPLIT_DEFAULTS),
        **_texts_of_part("mix", recipe["mix"], MIX_DEFAULTS),
    }


def recipe_of_texts(texts: Mapping[str, str], base: Mapping[str, Any]) -> dict[str, Any]:
    """The recipe that the fields say, as JSON that `Recipe` has not checked yet.

    Args:
        texts: What stands in the fields.
        base: The whole recipe that the form began with; what no field shows is taken from it.
    """
    return {
        **base,
        "role": texts.get("role", base["role"]),
        "seed": _number(texts.get("seed", "")),
        "leakage_threshold": _number(texts.get("leakage_threshold", "")),
        "intake": _intake_of_texts(texts, base["intake"]),
        "clean": list(_steps_of_texts(texts, base["clean"])),
        "checks": list(_checks_of_texts(texts, base["checks"])),
        "split": _part_of_texts("split", texts, SPLIT_DEFAULTS),
        "mix": _part_of_texts("mix", texts, MIX_DEFAULTS),
    }


def text_of(value: Any) -> str:
    """A setting as it stands in a field: texts as they are, lists of them with commas where that can be read
    back, everything else as JSON; "" for None.
    """
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        joined = ", ".join(value)
        if _list(joined) == list(value):
            return joined
    return json.dumps(value, ensure_ascii=False)


def value_of(text: str, default: Any) -> Any:
    """A setting out of a field. What it must be is told by its default; what cannot be read stays a text,
    which the recipe's own rules then refuse.
    """
    if isinstance(default, bool):
        return text == ON
    if isinstance(default, str):
        return text
    if isinstance(default, list | tuple):
        return _list(text)
    return _number(text) if text else None


def _texts_of_intake(intake: Mapping[str, Any]) -> Texts:
    texts = {name: text_of(intake[name]) for name in (*INTAKE_TEXTS, *OPTIONAL_INTAKE_TEXTS)}
    texts["needs_answer"] = ON if intake["needs_answer"] else ""
    texts["keep"] = text_of(intake["keep"])
    texts["tags"] = ", ".join(
        name if name == column else f"{name}={column}" for name, column in intake["tags"].items()
    )
    for meaning in COLUMN_MEANINGS:
        texts[f"column__{meaning}"] = intake["columns"].get(meaning, "")
    for name in FILTERS:
        chosen = intake[name] or {"column": "", "values": []}
        texts[f"{name}__column"] = chosen["column"]
        texts[f"{name}__values"] = ", ".join(chosen["values"])
    return texts


def _intake_of_texts(texts: Mapping[str, str], base: Mapping[str, Any]) -> dict[str, Any]:
    shown = {meaning: texts.get(f"column__{meaning}", "").strip() for meaning in COLUMN_MEANINGS}
    hidden = {key: value for key, value in base["columns"].items() if key not in COLUMN_MEANINGS}
    return {
        **base,
        **{name: texts.get(name) or "auto" for name in INTAKE_TEXTS},
        **{name: texts.get(name) or None for name in OPTIONAL_INTAKE_TEXTS},
        "needs_answer": texts.get("needs_answer") == ON,
        "keep": _list(texts.get("keep", "")),
        "tags": dict(_tags(texts.get("tags", ""))),
        "columns": {**{key: value for key, value in shown.items() if value}, **hidden},
        **{name: _filter(texts, name) for name in FILTERS},
    }


def _filter(texts: Mapping[str, str], name: str) -> dict[str, Any] | None:
    column, values = texts.get(f"{name}__column", "").strip(), _list(texts.get(f"{name}__values", ""))
    return {"column": column, "values": values} if column or values else None


def _tags(text: str) -> Iterator[tuple[str, str]]:
    for item in _list(text):
        name, _, column = item.partition("=")
        yield name.strip(), column.strip() or name.strip()


def _texts_of_steps(items: Sequence[Mapping[str, Any]]) -> Texts:
    given = {item["step"]: item for item in items}
    texts: Texts = {}
    for name, kind in STEPS.items():
        values = given.get(name, kind.defaults)
        texts[f"step__{name}"] = ON if name in given else ""
        for parameter in kind.defaults:
            value = values[parameter]
            shown = (ON if value else "") if isinstance(value, bool) else text_of(value)
            texts[f"step__{name}__{parameter}"] = shown
    return texts


def _steps_of_texts(texts: Mapping[str, str], base: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The steps that are on: those of the base in their order, then the others in the catalogue's."""
    for name in dict.fromkeys((*(item["step"] for item in base), *STEPS)):
        if texts.get(f"step__{name}") == ON:
            values = {
                parameter: value_of(texts.get(f"step__{name}__{parameter}", "").strip(), default)
                for parameter, default in STEPS[name].defaults.items()
            }
            yield {"step": name, **values}


def _checks_of_texts(texts: Mapping[str, str], base: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """The checks that are on; their parameters are those of the base, or their defaults."""
    given = {item["check"]: dict(item) for item in base}
    for name in dict.fromkeys((*given, *CHECKS)):
        if texts.get(f"check__{name}") == ON:
            yield given.get(name, {"check": name})


def _texts_of_part(section: str, part: Mapping[str, Any] | None, defaults: Mapping[str, Any]) -> Texts:
    values = defaults if part is None else part
    texts = {f"{section}__{name}": text_of(value) for name, value in values.items()}
    return {section: "" if part is None else ON, **texts}


def _part_of_texts(
    section: str, texts: Mapping[str, str], defaults: Mapping[str, Any]
) -> dict[str, Any] | None:
    if texts.get(section) != ON:
        return None
    return {
        name: value_of(texts.get(f"{section}__{name}", "").strip(), default)
        for name, default in defaults.items()
    }


def _number(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _list(text: str) -> list[Any]:
    """Items between commas, or a JSON list for items that hold commas themselves."""
    if text.lstrip().startswith("["):
        value = _number(text)
        if isinstance(value, list):
            return value
    return [item.strip() for item in _COMMA.split(text) if item.strip()]
