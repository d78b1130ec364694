"""What decides a distillation besides its inputs and its teachers."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from registry.artifacts.findings import shown
from training.engine.data.making.acceptance import AnswerRules
from training.engine.data.making.deflavouring import FLAVOUR_RULES, FlavourSettings
from training.engine.data.making.fault_lists import refuse_if_faulty
from training.engine.data.making.judging import DEFAULT_JUDGE_INSTRUCTION
from training.engine.data.making.structured_answers import AnswerSchema
from training.engine.errors import ConfigInvalid, Fault
from training.engine.settings_rules import FLAG, TEXT, Rule, choice, count, number, optional, read_section

ANSWER_FORMATS: Final = ("text", "json")


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillationSettings:
    """Settings of a distillation.

    Attributes:
        answer_format: ``text``, or ``json`` for one strict JSON value; ``json`` is the default with a schema.
        output_schema: JSON Schema 2020-12 of a right answer; None without one.
        num_candidates: Answers to each input, 1-16 (MISSION C5: 3); there must be as many different pairs of
            teacher and instruction.
        max_tokens: Longest answer; one that is cut there is no candidate.
        allow_refusals: Whether declining to answer is an answer.
        min_agreement: Inputs whose best candidate agrees less with the others (0-1) stay unanswered; above 0
            an input with one acceptable candidate does too.
        judge_weight: Part of the judge in the score of free text, 0-1; the rest is overlap.
        judge_instruction: System message of the judge.
        flavour: What counts as a stock phrase; None leaves answers as they are.
        num_lowest_for_people: Examples of lowest agreement that people look at.
        num_control_for_people: Further ones, drawn at random from all others.
        num_inputs_per_round: Inputs that are held in memory together; each teacher is called once a round.
        seed: Of the control part.
    """

    answer_format: str = "text"
    output_schema: Mapping[str, Any] | None = None
    num_candidates: int = 3
    max_tokens: int = 1024
    allow_refusals: bool = False
    min_agreement: float = 0.0
    judge_weight: float = 0.5
    judge_instruction: str = DEFAULT_JUDGE_INSTRUCTION
    flavour: FlavourSettings | None = field(default_factory=FlavourSettings)
    num_lowest_for_people: int = 80
    num_control_for_people: int = 20
    num_inputs_per_round: int = 4096
    seed: int = 0

    @classmethod
    def from_json(cls, raw: Any) -> "DistillationSettings":
        """Read settings; missing keys take their defaults, unknown ones are refused.

        Raises:
            ConfigInvalid: ``distillation-settings-invalid`` with every fault.
        """
        faults: list[Fault] = []
        values = read_section("distillation", raw, _RULES, faults)
        if values.get("flavour") is not None:
            given = read_section("distillation.flavour", values["flavour"], FLAVOUR_RULES, faults)
            values["flavour"] = FlavourSettings(**given)
        if values.get("output_schema") is not None:
            values.setdefault("answer_format", "json")
            faults += _check_schema(values["output_schema"], values["answer_format"])
        refuse_if_faulty(
            ConfigInvalid, "distillation-settings-invalid", "The settings of the distillation", faults
        )
        return cls(**values)

    def to_json(self) -> dict[str, Any]:
        """Return all values, defaults included; ``from_json`` of it gives equal settings."""
        return asdict(self)

    def answer_rules(self) -> AnswerRules:
        """Return what a candidate must be.

        Raises:
            ValueError: the schema is not valid (``from_json`` has checked it).
        """
        schema = None if self.output_schema is None else AnswerSchema(self.output_schema)
        return AnswerRules(
            is_json=self.answer_format == "json", schema=schema, allows_refusals=self.allow_refusals
        )


def _check_schema(schema: Mapping[str, Any], answer_format: str) -> list[Fault]:
    where = "distillation.output_schema"
    faults = []
    if answer_format != "json":
        message = "is given, but answer_format is text"
        remedy = "Leave answer_format out, or the schema."
        faults.append(Fault(code="schema-without-json", message=message, where=where, remedy=remedy))
    try:
        AnswerSchema(schema)
    except ValueError as error:
        message = f"is no valid JSON Schema: {shown(error)}"
        faults.append(Fault(code="schema-invalid", message=message, where=where))
    return faults


def _read_object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ValueError
    return value


OBJECT: Final = Rule("an object", _read_object)

_RULES: Mapping[str, Rule] = {
    "answer_format": choice(*ANSWER_FORMATS),
    "output_schema": optional(OBJECT),
    "num_candidates": count(1, 16),
    "max_tokens": count(1, 1_000_000),
    "allow_refusals": FLAG,
    "min_agreement": number(0, 1),
    "judge_weight": number(0, 1),
    "judge_instruction": TEXT,
    "flavour": optional(OBJECT),
    "num_lowest_for_people": count(0, 10_000),
    "num_control_for_people": count(0, 10_000),
    "num_inputs_per_round": count(1, 1_000_000),
    "seed": count(0, 2**32 - 1),
}
