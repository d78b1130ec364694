"""The definition of a suite: prompt, output schema, scoring, sampling and target, fixed before anything is
judged.

``suite.json`` is checked by a JSON Schema; then the output schema is checked as a schema, and the scored
fields are looked up in it. All faults are reported at once. A suite without ``min_score`` is refused:
without a target that its owner states, a useless adapter can pass every relative rule (DESIGN section 5, F4).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from jsonschema import Draft202012Validator

from evaluation.engine.canonical import canonical_digest
from evaluation.engine.errors import Fault, SuiteError, describe_faults
from evaluation.engine.scoring.fields import NORMALISERS, FieldRule
from evaluation.engine.scoring.schema_validity import SchemaValidator, resolve_pointer

ShippingForm = Literal["merged", "adapter"]

_TEXT: Final = {"type": "string", "minLength": 1}
_TOKENS: Final = {"type": "integer", "minimum": 1, "maximum": 32768}

SUITE_SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Assay suite definition",
    "type": "object",
    "additionalProperties": False,
    "required": [
        "name",
        "system_prompt",
        "baseline",
        "output_schema",
        "scoring",
        "sampling",
        "min_score",
        "shipping_form",
    ],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$"},
        "description": {"type": "string"},
        "system_prompt": {"type": "string"},
        "baseline": {
            "type": "object",
            "additionalProperties": False,
            "required": ["system_prompt"],
            "properties": {
                "system_prompt": {"type": "string"},
                "few_shot": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["user", "assistant"],
                        "properties": {"user": {"type": "string"}, "assistant": _TEXT},
                    },
                },
            },
        },
        "output_schema": {"type": "object"},
        "scoring": {
            "type": "object",
            "additionalProperties": False,
            "required": ["type", "fields"],
            "properties": {
                "type": {"const": "json_fields"},
                "fields": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {
                            "key": {"type": "boolean"},
                            "normalise": {"type": "array", "items": {"enum": sorted(NORMALISERS)}},
                        },
                    },
                },
            },
        },
        "sampling": {
            "type": "object",
            "additionalProperties": False,
            "required": ["max_tokens", "regression_max_tokens"],
            "properties": {
                "max_tokens": _TOKENS,
                "regression_max_tokens": _TOKENS,
                # Parity and paired statistics need outputs that can be made again: greedy only.
                "temperature": {"const": 0},
            },
        },
        "min_score": {"type": "number", "exclusiveMinimum": 0, "maximum": 1},
        "shipping_form": {"enum": ["merged", "adapter"]},
    },
}


@dataclass(frozen=True, slots=True)
class FewShot:
    """A demonstration in the baseline's prompt."""

    user: str
    assistant: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteDefinition:
    """A suite that was checked.

    Attributes:
        name: Name of the suite.
        description: What it is for.
        system_prompt: Put before task examples that bring no system message.
        baseline_system_prompt: The best prompt for the base model; replaces any system message in a baseline
            run.
        few_shot: Demonstrations of the baseline's prompt.
        output_schema: JSON Schema 2020-12 of a right answer.
        fields: The scored fields.
        max_tokens: Limit of generated tokens for task examples and canaries.
        regression_max_tokens: The same for open regression examples.
        min_score: Lowest holdout score (0-1) that its owner accepts.
        shipping_form: The form that is judged and served.
        document: The definition as it was given.
    """

    name: str
    description: str
    system_prompt: str
    baseline_system_prompt: str
    few_shot: tuple[FewShot, ...]
    output_schema: Mapping[str, Any]
    fields: tuple[FieldRule, ...]
    max_tokens: int
    regression_max_tokens: int
    min_score: float
    shipping_form: ShippingForm
    document: Mapping[str, Any]

    @property
    def digest(self) -> str:
        """sha256 of the definition's canonical JSON."""
        return canonical_digest(self.document)


def load_suite(document: Any) -> SuiteDefinition:
    """Check a suite definition and build it.

    Raises:
        SuiteError: With every fault (code ``suite-invalid``).
    """
    faults = suite_faults(document)
    if faults:
        raise SuiteError(
            "suite-invalid", f"the suite definition has {describe_faults(faults)}", faults=faults
        )
    return SuiteDefinition(
        name=document["name"],
        description=document.get("description", ""),
        system_prompt=document["system_prompt"],
        baseline_system_prompt=document["baseline"]["system_prompt"],
        few_shot=tuple(
            FewShot(shot["user"], shot["assistant"]) for shot in document["baseline"].get("few_shot", [])
        ),
        output_schema=document["output_schema"],
        fields=tuple(
            FieldRule(name, rule.get("key", False), tuple(rule.get("normalise", ())))
            for name, rule in document["scoring"]["fields"].items()
        ),
        max_tokens=document["sampling"]["max_tokens"],
        regression_max_tokens=document["sampling"]["regression_max_tokens"],
        min_score=float(document["min_score"]),
        shipping_form=document["shipping_form"],
        document=document,
    )


def suite_faults(document: Any) -> list[Fault]:
    """Return everything that is wrong with a suite definition; empty when it is sound."""
    faults = [
        _schema_fault(error.json_path, error.validator, error.message)
        for error in sorted(
            Draft202012Validator(SUITE_SCHEMA).iter_errors(document), key=lambda e: e.json_path
        )
    ]
    if not isinstance(document, Mapping):
        return faults
    schema = document.get("output_schema")
    if isinstance(schema, Mapping):
        faults.extend(_output_schema_faults(schema, document))
    return faults


def _schema_fault(json_path: str, validator: object, message: str) -> Fault:
    where = f"suite.json: {json_path.removeprefix('$').lstrip('.') or 'the root'}"
    if validator == "required" and message.startswith("'min_score'"):
        return Fault(
            "min-score-missing",
            "min_score is missing: the owner of the suite must state the lowest holdout score "
            "that is good enough",
            where,
            "add min_score, between 0 and 1",
        )
    if json_path == "$.sampling.temperature":
        return Fault("temperature-not-zero", "temperature must be 0: outputs are compared one by one", where)
    return Fault("suite-schema", message[:300], where)


def _output_schema_faults(schema: Mapping[str, Any], document: Mapping[str, Any]) -> Iterator[Fault]:
    try:
        SchemaValidator(schema)
    except ValueError as error:
        yield Fault("output-schema-invalid", f"is no valid JSON Schema: {error}", "suite.json: output_schema")
        return
    scoring = document.get("scoring")
    fields = scoring.get("fields") if isinstance(scoring, Mapping) else None
    for name in fields if isinstance(fields, Mapping) else ():
        if not _is_declared(schema, schema, str(name)):
            yield Fault(
                "scored-field-unknown",
                f"the field {name!r} is scored but is no property of output_schema",
                "suite.json: scoring.fields",
                "declare it under properties, or take it out of the scoring",
            )


def _is_declared(root: Mapping[str, Any], schema: Any, name: str, depth: int = 0) -> bool:
    """Say whether a key or dotted path is a property, looking through local references and combinations."""
    if not isinstance(schema, Mapping) or depth > 20:
        return False
    properties = schema.get("properties")
    if isinstance(properties, Mapping):
        if name in properties:
            return True
        head, dot, rest = name.partition(".")
        if dot and head in properties and _is_declared(root, properties[head], rest, depth + 1):
            return True
    parts = [part for key in ("allOf", "anyOf", "oneOf") for part in schema.get(key) or ()]
    parts.extend(schema[key] for key in ("then", "else") if key in schema)
    if isinstance(schema.get("$ref"), str):
        parts.append(resolve_pointer(root, schema["$ref"]))
    return any(_is_declared(root, part, name, depth + 1) for part in parts)
