from typing import Any

import pytest

from tests.training.engine.data.making.sets import small
from training.engine.data.making.template_checks import MAX_SLOTS
from training.engine.data.making.template_reading import read_template_set
from training.engine.errors import DataInvalid


def codes_of(raw: Any) -> list[tuple[str, str]]:
    with pytest.raises(DataInvalid) as caught:
        read_template_set(raw)
    return [(fault.code, fault.where) for fault in caught.value.faults]


def with_slot(name: str, *values: Any) -> dict[str, Any]:
    raw = small()
    raw["slots"][name] = {"values": list(values)}
    return raw


def one_template(text: str, **more: Any) -> list[dict[str, Any]]:
    return [{"id": "one", "text": text, **more}]


def test_unknown_slot() -> None:
    assert ("unknown-slot", "templates.0") in codes_of(
        small(templates=one_template("{start} {thing} {siez}"))
    )
    assert ("unknown-slot", "slots.extra.values.0") in codes_of(with_slot("extra", "{nothing}"))


def test_template_without_slots() -> None:
    templates = [*one_template("{start} {thing} {size}"), {"id": "two", "text": "Just so."}]
    assert ("template-without-slots", "templates.1") in codes_of(small(templates=templates))


def test_slots_that_hold_themselves() -> None:
    raw = with_slot("start", "now {again}")
    raw["slots"]["again"] = {"values": ["x", "{start}"]}
    assert codes_of(raw) == [("slot-cycle", "slots.start"), ("slot-cycle", "slots.again")]


def test_unreachable_slot() -> None:
    assert codes_of(with_slot("extra", "x")) == [("unreachable-slot", "slots.extra")]


def test_too_many_slots() -> None:
    raw = small()
    raw["slots"] |= {f"s{number}": {"values": [f"{{s{number + 1}}}"]} for number in range(5000)}
    assert codes_of(raw) == [("too-many-slots", "template_set.slots")]
    assert MAX_SLOTS == 200


def test_label_without_value() -> None:
    assert codes_of(small(answer=["colour", "size", "shape"])) == [
        ("label-without-value", "template_set.answer")
    ]
    rules = [{"when": {"shape": 1}, "then": {"kind": "x"}}]
    assert codes_of(small(rules=rules)) == [("label-without-value", "rules.0.when")]
    assert codes_of(small(exclude=[{"shape": 1}])) == [("label-without-value", "exclude.0")]


def test_unknown_label_value() -> None:
    assert codes_of(small(exclude=[{"colour": ["red", "green"]}])) == [("unknown-label-value", "exclude.0")]
    # 1 and true are equal in Python, not in JSON.
    assert codes_of(small(exclude=[{"size": True}])) == [("unknown-label-value", "exclude.0")]


def test_label_set_by_texts_and_by_a_rule() -> None:
    rules = [{"when": {}, "then": {"size": 3}}]
    assert codes_of(small(rules=rules)) == [("label-set-twice", "rules.0.then")]


def test_uneven_labels() -> None:
    raw = small()
    raw["slots"]["size"]["values"].append("It has a size.")
    assert codes_of(raw) == [("label-uneven", "slots.size.values.2")]


def test_a_template_that_does_not_state_a_label() -> None:
    templates = [*one_template("{start} {thing} {size}"), {"id": "two", "text": "{start} {thing}"}]
    assert codes_of(small(templates=templates)) == [("label-not-stated", "templates.1")]
    templates[1]["labels"] = {"size": 1}
    templates[1]["keep"] = []
    assert len(read_template_set(small(templates=templates)).templates) == 2


def test_values_and_templates_that_no_combination_uses() -> None:
    assert codes_of(small(exclude=[{"colour": "blue"}])) == [("unreachable-value", "slots.thing.values.2")]
    templates = [
        *one_template("{start} {thing} {size}"),
        {"id": "two", "text": "Blue: {start} {thing} {size}"},
    ]
    templates[1]["labels"] = {"colour": "blue", "size": 2}
    raw = small(templates=templates, exclude=[{"colour": "blue", "size": 2}])
    assert codes_of(raw) == [("unreachable-template", "templates.1")]


def test_no_combination_at_all() -> None:
    assert codes_of(small(exclude=[{"size": [1, 2]}])) == [("no-combination", "template_set.templates")]


def test_answers_that_are_undetermined_or_against_the_schema() -> None:
    rules = [{"when": {"size": 2}, "then": {"kind": "x"}}]
    raw = small(answer=["colour", "kind"], rules=rules)
    assert codes_of(raw) == [("label-undetermined", "template_set.rules")]
    schema = {"properties": {"size": {"maximum": 1}}}
    assert codes_of(small(output_schema=schema)) == [("answer-not-in-schema", "template_set.output_schema")]


def test_large_spaces_are_tried_value_by_value() -> None:
    raw = small(
        answer=["colour", "size", "name", "code"], templates=one_template("{start} {thing} {size} {n} {c}")
    )
    raw["slots"]["n"] = {"label": "name", "values": [f"name {number}" for number in range(100)]}
    raw["slots"]["c"] = {"label": "code", "values": [f"code {number}" for number in range(100)]}
    assert len(read_template_set(raw).slots) == 5
    raw["output_schema"] = {"properties": {"code": {"not": {"const": "code 99"}}}}
    assert codes_of(raw) == [("answer-not-in-schema", "template_set.output_schema")]
