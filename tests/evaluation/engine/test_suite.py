from typing import Any

import pytest

from evaluation.engine.errors import SuiteError
from evaluation.engine.scoring.fields import FieldRule
from evaluation.engine.suite import load_suite, suite_faults
from tests.evaluation.engine.samples import suite_document


def codes(document: Any) -> list[str]:
    return [fault.code for fault in suite_faults(document)]


def test_a_sound_definition_is_built() -> None:
    suite = load_suite(suite_document())
    assert suite.fields == (FieldRule("type", True, ()), FieldRule("urgency", False, ("strip",)))
    assert (suite.max_tokens, suite.min_score, suite.shipping_form) == (8, 0.8, "merged")
    assert suite.few_shot[0].user == "Screen is black"


def test_the_digest_depends_on_content_and_not_on_key_order() -> None:
    document = suite_document()
    reordered = dict(reversed(list(document.items())))
    assert load_suite(document).digest == load_suite(reordered).digest
    assert load_suite(document).digest != load_suite(suite_document(min_score=0.7)).digest


def test_a_suite_without_a_target_is_refused() -> None:
    document = suite_document()
    del document["min_score"]
    with pytest.raises(SuiteError, match="lowest holdout score") as error:
        load_suite(document)
    assert [fault.code for fault in error.value.faults] == ["min-score-missing"]


@pytest.mark.parametrize("score", [0, -1, 1.1, "0.8", None])
def test_an_impossible_target_is_refused(score: Any) -> None:
    assert codes(suite_document(min_score=score)) == ["suite-schema"]


def test_all_faults_come_at_once() -> None:
    document = suite_document(
        shipping_form="onnx",
        output_schema={"type": "objekt"},
        sampling={"max_tokens": 0, "regression_max_tokens": 6, "temperature": 0.7},
        unknown=1,
    )
    assert sorted(codes(document)) == [
        "output-schema-invalid",
        "suite-schema",
        "suite-schema",
        "suite-schema",
        "temperature-not-zero",
    ]


def test_a_scored_field_must_be_in_the_schema() -> None:
    scoring = {"type": "json_fields", "fields": {"type": {}, "priority": {}, "slots.city": {}}}
    assert codes(suite_document(scoring=scoring)) == ["scored-field-unknown", "scored-field-unknown"]


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"slots": {"properties": {"city": {}}}}},
        {
            "properties": {"slots": {"$ref": "#/$defs/slots"}},
            "$defs": {"slots": {"properties": {"city": {}}}},
        },
        {"allOf": [{"properties": {"slots": {"anyOf": [{"properties": {"city": {}}}]}}}]},
        {"properties": {"slots.city": {}}},
    ],
)
def test_nested_fields_are_found(schema: dict[str, Any]) -> None:
    scoring = {"type": "json_fields", "fields": {"slots.city": {}}}
    assert codes(suite_document(output_schema=schema, scoring=scoring)) == []


def test_an_unknown_normaliser_is_refused() -> None:
    scoring = {"type": "json_fields", "fields": {"type": {"normalise": ["lowercase"]}}}
    assert codes(suite_document(scoring=scoring)) == ["suite-schema"]


@pytest.mark.parametrize("document", [None, [], "text", {}])
def test_anything_else_is_refused(document: Any) -> None:
    with pytest.raises(SuiteError):
        load_suite(document)
