"""Builds the rows of examples.jsonl: one for each example and form, with everything that the report shows of
it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaluation.engine.backends.base import GenerationOutput
from evaluation.engine.errors import EvaluationError
from evaluation.engine.examples import RegressionExample
from evaluation.engine.json_text import JsonTextError, make_storable, parse_json
from evaluation.engine.phase import PhaseResult
from evaluation.engine.plan import PlannedExample, option_key
from evaluation.engine.prompts import ChatFormat, decode_raw
from evaluation.engine.scoring.behaviour import Behaviour, observe_behaviour
from evaluation.engine.scoring.fields import MISSING, FieldResult, compare_fields, field_score
from evaluation.engine.scoring.json_output import ParsedOutput, parse_output
from evaluation.engine.scoring.regression import ChoiceRule, score_choice, score_text
from evaluation.engine.scoring.schema_validity import SchemaValidator
from evaluation.engine.suite import SuiteDefinition

_QUIET = Behaviour(never_stopped=False, template_residue=False, repetition=False, preamble=False)


@dataclass(frozen=True, slots=True)
class RowBuilder:
    """Scores outputs and writes them as rows.

    Attributes:
        definition: The suite's definition.
        validator: Of the suite's output schema.
        chat: To spell out special tokens.
    """

    definition: SuiteDefinition
    validator: SchemaValidator
    chat: ChatFormat

    def build(self, planned: PlannedExample, form: str, result: PhaseResult) -> dict[str, Any]:
        """Build the row of one planned example from a phase's result.

        Raises:
            EvaluationError: The engine gave no output for it (``output-missing``).
        """
        row: dict[str, Any] = make_storable(self._build(planned, form, result))
        return row

    def _build(self, planned: PlannedExample, form: str, result: PhaseResult) -> dict[str, Any]:
        if planned.is_refused:
            return self._refused_row(planned, form)
        if planned.options:
            return self._choice_row(planned, form, result)
        output = result.generations.get(planned.key)
        if output is None:
            raise EvaluationError(
                "output-missing",
                f"the engine gave no output for {planned.role} example {planned.example.id}",
                failure_class="internal",
            )
        if isinstance(planned.example, RegressionExample):
            return self._open_regression_row(planned, planned.example, form, output)
        return self._task_row(planned, form, output)

    def _task_row(self, planned: PlannedExample, form: str, output: GenerationOutput) -> dict[str, Any]:
        parsed = parse_output(output.text)
        errors = self.validator.errors(parsed.value) if parsed.is_strict else []
        fields = self._compare(planned.example.reference, parsed)
        score = field_score(fields) if fields else None
        row = _generated_row(planned, form, output, self._behaviour(output))
        return {
            **row,
            "score": score,
            "passed": None if score is None else score == 1.0,
            "parse": parsed.level,
            "schema_valid": parsed.is_strict and not errors,
            "schema_errors": errors,
            "fields": {name: result.to_json() for name, result in fields.items()},
            "details": {**row["details"], **({"parse_error": parsed.reason} if parsed.reason else {})},
        }

    def _compare(self, reference: str | None, parsed: ParsedOutput) -> Mapping[str, FieldResult]:
        """Compare with the reference; a canary's may be absent or no JSON, and then there is nothing to
        compare.
        """
        if reference is None:
            return {}
        try:
            expected = parse_json(reference)
        except JsonTextError:
            return {}
        return compare_fields(self.definition.fields, expected, parsed.value if parsed.is_strict else MISSING)

    def _open_regression_row(
        self, planned: PlannedExample, example: RegressionExample, form: str, output: GenerationOutput
    ) -> dict[str, Any]:
        if isinstance(example.scoring, ChoiceRule):
            raise TypeError("a choice is scored, not generated")
        passed = score_text(example.scoring, output.text)
        return {
            **_generated_row(planned, form, output, self._behaviour(output)),
            "score": float(passed),
            "passed": passed,
        }

    def _choice_row(self, planned: PlannedExample, form: str, result: PhaseResult) -> dict[str, Any]:
        example = planned.example
        if not isinstance(example, RegressionExample) or not isinstance(example.scoring, ChoiceRule):
            raise TypeError("only a regression example with a choice has options")
        keys = [option_key(planned, number) for number in range(len(planned.options))]
        if any(key not in result.continuations for key in keys):
            raise EvaluationError(
                "output-missing",
                f"the engine scored not every option of regression example {example.id}",
                failure_class="internal",
            )
        totals = [sum(result.continuations[key].token_logprobs) for key in keys]
        outcome = score_choice(example.scoring, totals)
        number = example.scoring.labels.index(outcome.chosen)
        passed = outcome.chosen == example.scoring.answer
        row = _common_row(planned, form)
        return {
            **row,
            "output": example.scoring.choices[number],
            "finish_reason": "scored",
            "num_output_tokens": len(planned.options[number]),
            "score": float(passed),
            "passed": passed,
            "details": {
                **row["details"],
                "chosen": outcome.chosen,
                "answer": example.scoring.answer,
                "logprob_per_character": dict(outcome.scores),
            },
        }

    def _refused_row(self, planned: PlannedExample, form: str) -> dict[str, Any]:
        row = _common_row(planned, form)
        return {
            **row,
            "parse": "unparsed",
            "schema_valid": False,
            "details": {
                **row["details"],
                "refused": f"the prompt and its answer need {planned.num_needed_tokens} tokens, "
                "more than the context",
            },
        }

    def _behaviour(self, output: GenerationOutput) -> Behaviour:
        return observe_behaviour(
            raw_text=decode_raw(self.chat, output.token_ids),
            finish_reason=output.finish_reason,
            special_tokens=self.chat.tokenizer.all_special_tokens,
        )


def _generated_row(
    planned: PlannedExample, form: str, output: GenerationOutput, behaviour: Behaviour
) -> dict[str, Any]:
    row = _common_row(planned, form)
    if planned.role == "canary":
        # Forms and runs are compared token by token.
        row["details"]["token_ids"] = list(output.token_ids)
    return {
        **row,
        "output": output.text,
        "finish_reason": output.finish_reason,
        "num_output_tokens": len(output.token_ids),
        "behaviour": behaviour.to_json(),
    }


def _common_row(planned: PlannedExample, form: str) -> dict[str, Any]:
    example = planned.example
    return {
        "example_id": example.id,
        "role": planned.role,
        "form": form,
        "dimension": example.dimension if isinstance(example, RegressionExample) else None,
        "category": example.category,
        "tags": dict(example.tags),
        "messages": [message.to_json() for message in planned.prompt.messages],
        "reference": example.reference,
        "output": "",
        "finish_reason": "length",
        "num_prompt_tokens": len(planned.prompt.token_ids),
        "num_output_tokens": 0,
        "score": None,
        "passed": None,
        "parse": None,
        "schema_valid": None,
        "schema_errors": [],
        "fields": {},
        "behaviour": _QUIET.to_json(),
        "details": {"verified": example.is_verified},
    }
