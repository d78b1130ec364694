"""Symptoms in a model's outputs, recognised from the numbers of an evaluation (MISSION T5, F8, F10).

The thresholds are those of the default policy where it has one. A number that is missing is never taken for a
good
one: its rule is listed as unchecked.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from registry.artifacts.findings import Severity
from training.engine.handbook.lookup import get_treatment
from training.engine.handbook.rows import HandbookRow
from training.engine.monitor.findings import Finding, order_findings

MIN_EXAMPLES: Final = 20
"""Fewer say nothing: one example of 20 is 5 %."""
MIN_CONCERNED: Final = 2
BEHAVIOUR_RATE: Final = 0.01
"""Default policy: never-stops and template residue on holdout and OOD."""
REPETITION_RATE: Final = 0.02
PREAMBLE_RATE: Final = 0.05
MAX_DROP: Final = 0.05
"""MISSION F8: more than five points in a dimension."""
LEAST_OOD_RATIO: Final = 0.85
"""MISSION F2."""
LENGTH_DROP: Final = 0.10
SURE: Final = 2.0
"""Standard errors of a difference of two rates."""
FIELD_GAP: Final = 0.2
CONSTANT_VALUE: Final = 0.8
"""MISSION C7: a value above 80 %."""
WELL_FORMED: Final = 0.9
OFF_TOPIC_SCORE: Final = 0.3
"""Mean share of right fields. Guide 6.3: the answers are fluent and do not belong to the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A share of examples.

    Attributes:
        value: 0-1.
        num_examples: Of how many.
    """

    value: float
    num_examples: int

    @property
    def num_concerned(self) -> int:
        """How many that are."""
        return round(self.value * self.num_examples)


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldSymptoms:
    """How one field of structured answers is given.

    Attributes:
        accuracy: Of the field.
        commonest_observed_fraction: Share of the value that the model gives most; None when not known.
        commonest_expected_fraction: Share of the value that is right most often; None when not known.
    """

    accuracy: Rate
    commonest_observed_fraction: float | None = None
    commonest_expected_fraction: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputSymptoms:
    """The numbers of an evaluation that rules look at; None where one is not known.

    Attributes:
        never_stops: Outputs that ran into the limit, on holdout and OOD together.
        template_tokens: Outputs with markers of a chat template.
        repetition: Outputs that repeat a phrase over and over.
        preamble: Outputs that begin with a stock phrase.
        baseline_preamble: The same of the base model under its best prompt.
        drops: Baseline minus candidate by regression dimension, as fractions; {} without a baseline.
        parity: Canaries on which merged model and adapter diverge.
        noise_fraction: Canaries on which the same model diverges from itself; 0 when not measured.
        holdout_score: Mean score on the holdout, 0-1.
        ood_score: Mean score on the examples of other origin, 0-1.
        strict_parse: Holdout outputs that are strict JSON; None for tasks without it.
        short_valid: Strict JSON among the shorter three quarters of the inputs.
        long_valid: Strict JSON among the longest quarter.
        fields: By name; {} for tasks without.
    """

    never_stops: Rate | None = None
    template_tokens: Rate | None = None
    repetition: Rate | None = None
    preamble: Rate | None = None
    baseline_preamble: Rate | None = None
    drops: Mapping[str, float] = field(default_factory=dict)
    parity: Rate | None = None
    noise_fraction: float = 0.0
    holdout_score: Rate | None = None
    ood_score: Rate | None = None
    strict_parse: Rate | None = None
    short_valid: Rate | None = None
    long_valid: Rate | None = None
    fields: Mapping[str, FieldSymptoms] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputReport:
    """What the rules say.

    Attributes:
        findings: In the order of treatment; their step is 0.
        unchecked: Codes of rules that lacked numbers: no finding of theirs means nothing.
    """

    findings: tuple[Finding, ...]
    unchecked: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OutputRule:
    """One rule; ``check`` returns findings, or None when it lacks numbers."""

    code: str
    check: Callable[[OutputSymptoms], list[Finding] | None]


def judge_outputs(symptoms: OutputSymptoms) -> OutputReport:
    """Apply all rules."""
    findings: list[Finding] = []
    unchecked: list[str] = []
    for rule in OUTPUT_RULES:
        found = rule.check(symptoms)
        if found is None:
            unchecked.append(rule.code)
        else:
            findings += found
    return OutputReport(findings=tuple(order_findings(findings)), unchecked=tuple(unchecked))


def _find(
    code: str,
    row: HandbookRow,
    message: str,
    evidence: Mapping[str, float],
    *,
    severity: Severity = Severity.WARNING,
    treatment_index: int = 0,
) -> Finding:
    return Finding(
        code=code,
        row=row,
        severity=severity,
        step=0,
        message=message,
        evidence=evidence,
        treatment=get_treatment(row, treatment_index),
    )


def _exceeds(rate: Rate, limit: float) -> bool:
    return rate.value > limit and rate.num_concerned >= MIN_CONCERNED


def _check_rate(
    code: str, row: HandbookRow, rate: Rate | None, limit: float, told: str
) -> list[Finding] | None:
    if rate is None or rate.num_examples < MIN_EXAMPLES:
        return None
    if not _exceeds(rate, limit):
        return []
    message = f"{rate.num_concerned} of {rate.num_examples} outputs {told} ({rate.value:.1%})."
    return [_find(code, row, message, {"rate": rate.value, "num_examples": rate.num_examples})]


def _never_stops(symptoms: OutputSymptoms) -> list[Finding] | None:
    return _check_rate(
        "evaluation/never-stops",
        HandbookRow.NEVER_STOPS,
        symptoms.never_stops,
        BEHAVIOUR_RATE,
        "ran into the limit instead of stopping",
    )


def _template_tokens(symptoms: OutputSymptoms) -> list[Finding] | None:
    return _check_rate(
        "evaluation/template-tokens-in-output",
        HandbookRow.TEMPLATE_TOKENS_IN_OUTPUT,
        symptoms.template_tokens,
        BEHAVIOUR_RATE,
        "hold markers of a chat template",
    )


def _repetition(symptoms: OutputSymptoms) -> list[Finding] | None:
    return _check_rate(
        "evaluation/repetition",
        HandbookRow.REPETITION,
        symptoms.repetition,
        REPETITION_RATE,
        "repeat a phrase over and over",
    )


def _style_drift(symptoms: OutputSymptoms) -> list[Finding] | None:
    rate, base = symptoms.preamble, symptoms.baseline_preamble
    limit = max(PREAMBLE_RATE, base.value if base is not None else 0.0)
    return _check_rate(
        "evaluation/style-drift", HandbookRow.STYLE_DRIFT, rate, limit, "begin with a stock phrase"
    )


def _forgetting(symptoms: OutputSymptoms) -> list[Finding] | None:
    if not symptoms.drops:
        return None
    dropped = {name: drop for name, drop in symptoms.drops.items() if drop > MAX_DROP}
    if not dropped:
        return []
    listed = ", ".join(f"{name} by {100 * drop:.1f}" for name, drop in sorted(dropped.items()))
    return [
        _find(
            "evaluation/forgetting",
            HandbookRow.FORGETTING,
            f"Dimensions dropped by more than {100 * MAX_DROP:.0f} points: {listed}.",
            {f"drop_{name}": drop for name, drop in sorted(dropped.items())},
            severity=Severity.ERROR,
        )
    ]


def _worse_after_merge(symptoms: OutputSymptoms) -> list[Finding] | None:
    parity = symptoms.parity
    if parity is None or parity.num_examples < MIN_EXAMPLES:
        return None
    if not _exceeds(parity, symptoms.noise_fraction):
        return []
    return [
        _find(
            "evaluation/worse-after-merge",
            HandbookRow.WORSE_AFTER_MERGE,
            f"Merged model and adapter diverge on {parity.num_concerned} of {parity.num_examples} canaries; "
            f"the "
            f"same model diverges from itself on {symptoms.noise_fraction:.0%}.",
            {"diverged_fraction": parity.value, "noise_fraction": symptoms.noise_fraction},
        )
    ]


def _ood_drop(symptoms: OutputSymptoms) -> list[Finding] | None:
    holdout, ood = symptoms.holdout_score, symptoms.ood_score
    if holdout is None or ood is None or min(holdout.num_examples, ood.num_examples) < MIN_EXAMPLES:
        return None
    if holdout.value <= 0 or ood.value >= LEAST_OOD_RATIO * holdout.value:
        return []
    ratio = ood.value / holdout.value
    return [
        _find(
            "evaluation/ood-drop",
            HandbookRow.HELD_OUT_RISES,
            f"The score on examples of other origin is {ratio:.0%} of the holdout's ({ood.value:.3f} to "
            f"{holdout.value:.3f}): the model has learnt the training data by heart.",
            {"ood_ratio": ratio, "holdout_score": holdout.value, "ood_score": ood.value},
            treatment_index=1,
        )
    ]


def _long_inputs(symptoms: OutputSymptoms) -> list[Finding] | None:
    short, long = symptoms.short_valid, symptoms.long_valid
    if short is None or long is None or min(short.num_examples, long.num_examples) < MIN_EXAMPLES:
        return None
    drop = short.value - long.value
    if drop < LENGTH_DROP or drop < SURE * _standard_error(short, long):
        return []
    return [
        _find(
            "evaluation/long-input-collapse",
            HandbookRow.LONG_INPUT_COLLAPSE,
            f"{long.value:.0%} of the outputs for the longest quarter of the inputs are valid, "
            f"{short.value:.0%} of "
            "the others.",
            {"long_valid_rate": long.value, "short_valid_rate": short.value},
        )
    ]


def _standard_error(first: Rate, second: Rate) -> float:
    """Of the difference of two rates, with one success and one failure added to each (Agresti and Caffo 2000,
    https://doi.org/10.1080/00031305.2000.10474560).
    """
    total = 0.0
    for rate in (first, second):
        num = rate.num_examples + 2
        share = (rate.num_concerned + 1) / num
        total += share * (1 - share) / num
    return float(total**0.5)


def _fields(symptoms: OutputSymptoms) -> list[Finding] | None:
    known = {
        name: item for name, item in symptoms.fields.items() if item.accuracy.num_examples >= MIN_EXAMPLES
    }
    if len(known) < 2:
        return None
    found = []
    for name, item in sorted(known.items()):
        best = max(other.accuracy.value for key, other in known.items() if key != name)
        if best - item.accuracy.value >= FIELD_GAP:
            found.append(_describe_field(name, item, best))
    return found


def _describe_field(name: str, item: FieldSymptoms, best: float) -> Finding:
    observed, expected = item.commonest_observed_fraction, item.commonest_expected_fraction
    message = f"The field {name} is right in {item.accuracy.value:.0%}, another in {best:.0%}"
    evidence = {"accuracy": item.accuracy.value, "best_accuracy": best}
    is_constant = observed is not None and observed >= CONSTANT_VALUE
    if observed is not None:
        evidence["commonest_observed_fraction"] = observed
    if is_constant and observed is not None:
        message += f"; one value makes up {observed:.0%} of what the model gives"
    if expected is not None:
        evidence["commonest_expected_fraction"] = expected
        message += f" and {expected:.0%} of the right answers" if is_constant else ""
    # Where no value is given always, the distribution is not the cause (guide 6.3).
    return _find(
        "evaluation/field-always-wrong",
        HandbookRow.FIELD_ALWAYS_WRONG,
        f"{message}.",
        evidence,
        treatment_index=0 if is_constant or observed is None else 1,
    )


def _off_topic(symptoms: OutputSymptoms) -> list[Finding] | None:
    score, parsed = symptoms.holdout_score, symptoms.strict_parse
    if score is None or parsed is None or score.num_examples < MIN_EXAMPLES:
        return None
    if parsed.value < WELL_FORMED or score.value > OFF_TOPIC_SCORE:
        return []
    return [
        _find(
            "evaluation/off-topic",
            HandbookRow.OFF_TOPIC,
            f"{parsed.value:.0%} of the outputs have the right form, and their mean score is "
            f"{score.value:.2f}: they "
            "do not belong to the inputs.",
            {"strict_parse_rate": parsed.value, "score": score.value},
            severity=Severity.ERROR,
        )
    ]


OUTPUT_RULES: Final = (
    OutputRule("evaluation/never-stops", _never_stops),
    OutputRule("evaluation/template-tokens-in-output", _template_tokens),
    OutputRule("evaluation/forgetting", _forgetting),
    OutputRule("evaluation/worse-after-merge", _worse_after_merge),
    OutputRule("evaluation/ood-drop", _ood_drop),
    OutputRule("evaluation/repetition", _repetition),
    OutputRule("evaluation/off-topic", _off_topic),
    OutputRule("evaluation/style-drift", _style_drift),
    OutputRule("evaluation/long-input-collapse", _long_inputs),
    OutputRule("evaluation/field-always-wrong", _fields),
)
