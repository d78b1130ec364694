"""A suite as a job gets it: a folder with suite.json and the four sets, checked together before any model is
loaded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from evaluation.engine.errors import Fault, SuiteError, describe_faults
from evaluation.engine.examples import (
    MAX_FAULTS,
    AnyExample,
    Example,
    ParsedExamples,
    RegressionExample,
    Role,
    parse_examples,
)
from evaluation.engine.json_text import JsonTextError, parse_json
from evaluation.engine.scoring.schema_validity import SchemaValidator
from evaluation.engine.suite import SuiteDefinition, load_suite, suite_faults

EVALUATION_ROLES: Final[tuple[Role, ...]] = ("holdout", "ood", "regression", "canary")


@dataclass(frozen=True, slots=True)
class Suite:
    """A checked suite with its sets."""

    definition: SuiteDefinition
    holdout: tuple[Example, ...]
    ood: tuple[Example, ...]
    regression: tuple[RegressionExample, ...]
    canary: tuple[Example, ...]

    def examples(self, role: Role) -> tuple[AnyExample, ...]:
        """Return the examples of one of the four evaluation roles."""
        sets: dict[Role, tuple[AnyExample, ...]] = {
            "holdout": self.holdout,
            "ood": self.ood,
            "regression": self.regression,
            "canary": self.canary,
        }
        return sets[role]


def load_suite_folder(folder: Path) -> Suite:
    """Read suite.json, holdout.jsonl, ood.jsonl, regression.jsonl and canary.jsonl.

    Raises:
        SuiteError: With the faults of all files at once (code ``suite-invalid``).
    """
    faults: list[Fault] = []
    document = _read_definition(folder / "suite.json", faults)
    sets = {role: _read_set(folder / f"{role}.jsonl", role, faults) for role in EVALUATION_ROLES}
    if not faults:
        definition = load_suite(document)
        for role in ("holdout", "ood"):
            faults.extend(_reference_faults(definition, sets[role].examples, f"{role}.jsonl"))
        faults.extend(_few_shot_faults(definition, sets))
    if faults:
        message = f"the suite in {folder.name} has {describe_faults(faults)}"
        raise SuiteError("suite-invalid", message, faults=faults[:MAX_FAULTS])
    return Suite(
        definition,
        sets["holdout"].examples,
        sets["ood"].examples,
        cast("tuple[RegressionExample, ...]", sets["regression"].examples),
        sets["canary"].examples,
    )


def _read_definition(path: Path, faults: list[Fault]) -> Any:
    try:
        document = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        faults.append(Fault("file-missing", "the file is missing", path.name))
        return None
    except (JsonTextError, UnicodeDecodeError) as error:
        faults.append(Fault("not-json", f"is not JSON: {error}", path.name))
        return None
    faults.extend(suite_faults(document))
    return document


def _read_set(path: Path, role: Role, faults: list[Fault]) -> ParsedExamples:
    if not path.is_file():
        faults.append(Fault("file-missing", f"the {role} set is missing", path.name))
        return ParsedExamples((), (), 0)
    with path.open("rb") as stream:
        parsed = parse_examples(stream, role, path.name)
    faults.extend(parsed.faults)
    return parsed


def _reference_faults(
    definition: SuiteDefinition, examples: tuple[AnyExample, ...], file_name: str
) -> Iterator[Fault]:
    """A reference that is no JSON, or not valid under the suite's schema, would fail every right answer."""
    validator = SchemaValidator(definition.output_schema)
    for example in examples:
        where = f"{file_name}: {example.id}"
        try:
            errors = validator.errors(parse_json(example.reference or ""))
        except JsonTextError as error:
            yield Fault("reference-not-json", f"the reference answer is no strict JSON: {error}", where)
            continue
        if errors:
            message = (
                f"the reference answer breaks output_schema at {errors[0]['path']}: {errors[0]['message']}"
            )
            yield Fault("reference-schema-invalid", message, where)


def _few_shot_faults(definition: SuiteDefinition, sets: dict[Role, ParsedExamples]) -> Iterator[Fault]:
    """A demonstration that is also an evaluation example hands the baseline its answer (lm-eval PR 3978)."""
    shown = {" ".join(shot.user.split()).casefold() for shot in definition.few_shot}
    for role in ("holdout", "ood"):
        for example in sets[role].examples:
            if " ".join(example.messages[-1].content.split()).casefold() in shown:
                yield Fault(
                    "few-shot-leak",
                    "the example is also a demonstration in baseline.few_shot",
                    f"{role}.jsonl: {example.id}",
                    "take another demonstration out of the training data",
                )
