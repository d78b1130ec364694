"""The form that prepares raw data: its fields in sections, filled from a recipe or from what was typed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from registry.choices import EVALUATION_ROLES, TRAINING_ROLES, DatasetRole
from registry.models import BaseModel, DatasetVersion
from training.admin.recipe_texts import COLUMN_MEANINGS, MIX_DEFAULTS, ON, SPLIT_DEFAULTS
from training.engine.data.checks.catalogue import CHECKS
from training.engine.data.cleaning.catalogue import STEPS
from training.engine.data.intake.encodings import ENCODING_NAMES
from training.engine.data.intake.settings import AUTO, DELIMITERS, FORMATS, REFERENCE_SOURCES, SHAPES
from training.engine.data.recipe import ROLES

MAX_OFFERED: Final = 200
LONG_TEXT_CHARACTERS: Final = 60

_HELP: Final[Mapping[str, str]] = {
    "name": "The main set becomes its next version; the holdout set goes to the name with -holdout.",
    "tags": "Columns, with commas; tag=column renames one.",
    "keep": "Further columns to keep, with commas.",
    "adoption__values": "Only rows with one of these values are taken, as a log's adopted results.",
    "rework__values": "Rows with one of these values are left out, as results that were reworked.",
    "system_prompt": "Put before conversations that have none.",
    "reference_source": "For rows that do not say it.",
    "confirmed_by": "For rows that do not say it.",
    "stratify_by": "category, tags/NAME or answer/FIELD",
    "group_by": "group, tags/NAME or origin/NAME: equal values stay on one side",
    "balance_by": "category, tags/NAME or answer/FIELD whose rare values are repeated",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One field of the form.

    Attributes:
        name: As it is sent.
        label: For people.
        kind: "text", "long", "flag", "choice" or "choices".
        value: What stands in it; for a flag "on" or "".
        options: (value, label, whether it is chosen) of a choice.
        help: What may stand in it; "" when the label says it all.
        list_id: Id of a list of suggestions; "" without one.
    """

    name: str
    label: str
    kind: str = "text"
    value: str = ""
    options: tuple[tuple[str, str, bool], ...] = ()
    help: str = ""
    list_id: str = ""

    @property
    def is_on(self) -> bool:
        """Whether a flag is set."""
        return self.value == ON


@dataclass(frozen=True, slots=True, kw_only=True)
class Switch:
    """A part of the recipe that is on or off, with its settings."""

    field: Field
    summary: str
    source: str = ""
    settings: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareForm:
    """All fields, in the sections of the page."""

    target: tuple[Field, ...]
    reading: tuple[Field, ...]
    columns: tuple[Field, ...]
    steps: tuple[Switch, ...]
    checks: tuple[Switch, ...]
    split: Switch
    mix: Switch
    comparison: tuple[Field, ...]


def build_form(texts: Mapping[str, str], chosen_sets: Sequence[str]) -> PrepareForm:
    """The form with what stands in its fields.

    Args:
        texts: By name of the field; see `recipe_texts`.
        chosen_sets: "name@number" of the evaluation sets that are chosen.
    """
    return PrepareForm(
        target=(
            _text(texts, "name", label="Dataset"),
            _choice(texts, "role", [(role, role) for role in ROLES], label="Role of the main set"),
            _text(texts, "seed"),
        ),
        reading=tuple(_reading_fields(texts)),
        columns=tuple(_column_fields(texts)),
        steps=tuple(_step_switch(texts, name, kind) for name, kind in STEPS.items()),
        checks=tuple(_check_switch(texts, name, kind) for name, kind in CHECKS.items()),
        split=_part_switch(texts, "split", "Cut a holdout set (for role train only)", SPLIT_DEFAULTS),
        mix=_mix_switch(texts),
        comparison=tuple(_comparison_fields(texts, chosen_sets)),
    )


def _reading_fields(texts: Mapping[str, str]) -> Iterator[Field]:
    for name, values in (
        ("format", FORMATS),
        ("encoding", ENCODING_NAMES),
        ("delimiter", DELIMITERS),
        ("shape", SHAPES),
    ):
        yield _choice(texts, name, [(AUTO, "found out"), *((value, value) for value in values)])
    sources = [("", "unknown"), *((value, value) for value in REFERENCE_SOURCES)]
    yield _choice(texts, "reference_source", sources, label="References made by")
    yield _text(texts, "confirmed_by", label="References confirmed by")
    yield _text(texts, "system_prompt", kind="long")
    yield _flag(texts, "needs_answer", label="A row without an answer is bad")


def _column_fields(texts: Mapping[str, str]) -> Iterator[Field]:
    for meaning in COLUMN_MEANINGS:
        name = f"column__{meaning}"
        yield _text(texts, name, label=meaning.replace("_", " "), list_id="raw-columns")
    yield _text(texts, "tags")
    yield _text(texts, "keep")
    yield _text(texts, "adoption__column", label="adopted by column", list_id="raw-columns")
    yield _text(texts, "adoption__values", label="adopted values")
    yield _text(texts, "rework__column", label="reworked by column", list_id="raw-columns")
    yield _text(texts, "rework__values", label="reworked values")


def _step_switch(texts: Mapping[str, str], name: str, kind: Any) -> Switch:
    prefix = f"step__{name}"
    return Switch(
        field=_flag(texts, prefix, label=name),
        summary=kind.summary,
        source=kind.source,
        settings=tuple(
            _setting(texts, f"{prefix}__{parameter}", parameter, default, kind.rules[parameter].expected)
            for parameter, default in kind.defaults.items()
        ),
    )


def _check_switch(texts: Mapping[str, str], name: str, kind: Any) -> Switch:
    return Switch(field=_flag(texts, f"check__{name}", label=name), summary=kind.summary, source=kind.source)


def _part_switch(texts: Mapping[str, str], name: str, summary: str, defaults: Mapping[str, Any]) -> Switch:
    return Switch(
        field=_flag(texts, name, label=name),
        summary=summary,
        settings=tuple(
            _setting(texts, f"{name}__{setting}", setting, default, _HELP.get(setting, ""))
            for setting, default in defaults.items()
        ),
    )


def _mix_switch(texts: Mapping[str, str]) -> Switch:
    switch = _part_switch(texts, "mix", "Mix other examples into the training set", MIX_DEFAULTS)
    general = _versions((DatasetRole.GENERAL,), [texts.get("general", "")])
    unchanged = _versions(TRAINING_ROLES, [texts.get("unchanged", "")])
    fields = (
        Field(name="general", label="general dataset", kind="choice", options=(_NOTHING, *general)),
        Field(
            name="unchanged",
            label="dataset with nothing to change",
            kind="choice",
            options=(_NOTHING, *unchanged),
        ),
    )
    return Switch(field=switch.field, summary=switch.summary, settings=(*fields, *switch.settings))


def _comparison_fields(texts: Mapping[str, str], chosen_sets: Sequence[str]) -> Iterator[Field]:
    yield Field(
        name="evaluation_sets",
        label="Evaluation sets in which no training example may stand",
        kind="choices",
        options=tuple(_versions(EVALUATION_ROLES, chosen_sets)),
    )
    yield _text(texts, "leakage_threshold", label="Similarity of a near duplicate")
    names = BaseModel.objects.order_by("name").values_list("name", flat=True)[:MAX_OFFERED]
    offered = [("", "none"), *((name, name) for name in names)]
    yield _choice(texts, "base_model", offered, label="Lengths in tokens of base model")


_NOTHING: Final = ("", "none", False)


def _versions(roles: Sequence[str], chosen: Sequence[str]) -> list[tuple[str, str, bool]]:
    rows = DatasetVersion.objects.filter(dataset__role__in=roles).select_related("dataset")
    return [
        (str(row), f"{row} ({row.dataset.role}, {row.num_examples})", str(row) in chosen)
        for row in rows[:MAX_OFFERED]
    ]


def _setting(texts: Mapping[str, str], name: str, label: str, default: Any, help_text: str) -> Field:
    label = label.replace("_", " ")
    if isinstance(default, bool):
        return _flag(texts, name, label=label)
    value = texts.get(name, "")
    kind = "long" if len(value) > LONG_TEXT_CHARACTERS else "text"
    return Field(name=name, label=label, kind=kind, value=value, help=help_text)


def _text(
    texts: Mapping[str, str], name: str, *, label: str = "", kind: str = "text", list_id: str = ""
) -> Field:
    return Field(
        name=name,
        label=label or name.replace("_", " "),
        kind=kind,
        value=texts.get(name, ""),
        help=_HELP.get(name, ""),
        list_id=list_id,
    )


def _flag(texts: Mapping[str, str], name: str, *, label: str) -> Field:
    return Field(name=name, label=label, kind="flag", value=texts.get(name, ""))


def _choice(
    texts: Mapping[str, str], name: str, offered: Sequence[tuple[str, str]], *, label: str = ""
) -> Field:
    value = texts.get(name, "")
    options = tuple((item, text, item == value) for item, text in offered)
    return Field(
        name=name,
        label=label or name.replace("_", " "),
        kind="choice",
        value=value,
        options=options,
        help=_HELP.get(name, ""),
    )
