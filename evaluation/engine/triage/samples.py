"""The samples of a triage: examples with the answer that is wanted, and how an open answer is checked.

A line has the shape of a holdout line (see ``examples``). Two further keys say how an answer is judged that
is neither JSON nor a short label: ``scoring`` (exact, contains or regex, as in regression lines) and
``checks`` (points that must be there, phrases that must not, the longest answer). Without them an open answer
is judged by a person alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from evaluation.engine.errors import Fault, describe_faults
from evaluation.engine.examples import MAX_FAULTS, Example, parse_examples
from evaluation.engine.json_text import JsonTextError, parse_json
from evaluation.engine.scoring.regression import ChoiceRule, ScoringRule, ScoringRuleError, parse_scoring_rule
from evaluation.engine.triage.errors import TriageInvalid
from registry.artifacts.findings import shown

FEW_SAMPLES: Final = 10
"""Below this there is no verdict: the guide's test has 20, and half of it is the least with a pattern."""

MAX_SAMPLES: Final = 200
"""A triage is read sample by sample by a person; larger sets are for evaluation runs (F4)."""

MAX_LABEL_CHARACTERS: Final = 80
"""A longer reference, or one of several lines, is an open answer: equality would fail every right one."""

MAX_POINTS: Final = 20

_CHECK_KEYS: Final = ("required_points", "forbidden_phrases", "max_characters")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleChecks:
    """How an open answer is checked (F6).

    Attributes:
        required_points: Texts that a right answer holds, in any order.
        forbidden_phrases: Texts that an answer in the wanted style does not hold.
        max_characters: Longest answer in the wanted style; None sets no limit.
    """

    required_points: tuple[str, ...] = ()
    forbidden_phrases: tuple[str, ...] = ()
    max_characters: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """One sample.

    Attributes:
        example: The conversation and the reference answer.
        reference: The reference, never empty.
        expected: The JSON object or list that the reference is; None when it is a text.
        scoring: Rule of its own; None leaves it to the reference.
        checks: Of an open answer.
    """

    example: Example
    reference: str
    expected: Any
    scoring: ScoringRule | None
    checks: SampleChecks

    @property
    def id(self) -> str:
        """The sample's id."""
        return self.example.id

    @property
    def is_structured(self) -> bool:
        """Whether the answer that is wanted is a JSON object or list."""
        return self.expected is not None

    @property
    def is_label(self) -> bool:
        """Whether the answer that is wanted is a short text, to be met exactly."""
        is_short = len(self.reference.strip()) <= MAX_LABEL_CHARACTERS and "\n" not in self.reference.strip()
        return not self.is_structured and is_short and not self.checks.required_points

    @property
    def is_open(self) -> bool:
        """Whether nothing but a person can say that an answer is right."""
        has_rule = self.scoring is not None or bool(self.checks.required_points)
        return not (self.is_structured or self.is_label or has_rule)

    @property
    def input_text(self) -> str:
        """Everything that the sample itself tells the model: its system and user messages."""
        return "\n".join(message.content for message in self.example.messages)


@dataclass(frozen=True, slots=True)
class ParsedSamples:
    """The samples of one file, and what a person should know about them."""

    samples: tuple[Sample, ...]
    warnings: tuple[Fault, ...]


def parse_samples(lines: Iterable[bytes], file_name: str = "samples.jsonl") -> ParsedSamples:
    """Read and check the samples of a triage.

    Args:
        lines: JSON Lines, as a file opened in binary mode gives them.
        file_name: Named in the faults.

    Raises:
        TriageInvalid: With every fault (code ``samples-invalid``), also when there are more than
            ``MAX_SAMPLES``.
    """
    parsed = parse_examples(lines, "holdout", file_name)
    faults, samples = list(parsed.faults), []
    for example in parsed.examples:
        sample, found = _read_sample(example, file_name)
        faults.extend(found)
        if sample is not None:
            samples.append(sample)
    num_faults = len(faults) + parsed.num_faults - len(parsed.faults)
    if len(parsed.examples) > MAX_SAMPLES:
        message = f"the file holds {len(parsed.examples)} samples; at most {MAX_SAMPLES} are looked at"
        faults.append(
            Fault("too-many-samples", message, file_name, "choose about 20 that stand for the task")
        )
        num_faults += 1
    if faults:
        raise TriageInvalid(
            "samples-invalid",
            f"the samples have {describe_faults(faults, num_faults)}",
            faults=faults[:MAX_FAULTS],
        )
    return ParsedSamples(tuple(samples), tuple(_list_warnings(samples, file_name)))


def _list_warnings(samples: list[Sample], file_name: str) -> Iterable[Fault]:
    if len(samples) < FEW_SAMPLES:
        message = f"{len(samples)} samples are too few for a verdict; at least {FEW_SAMPLES} are needed"
        yield Fault("few-samples", message, file_name, "write about 20")
    open_ids = [sample.id for sample in samples if sample.is_open]
    if open_ids:
        listed = ", ".join(shown(name) for name in open_ids[:5])
        yield Fault(
            "open-reference",
            f"{len(open_ids)} samples have an open reference and no rule ({listed}): only a person can judge "
            "their answers",
            file_name,
            "add checks.required_points, or scoring, to these lines",
        )
    doubtful = [sample.id for sample in samples if not sample.example.is_verified]
    if doubtful:
        listed = ", ".join(shown(name) for name in doubtful[:5])
        yield Fault(
            "reference-unverified",
            f"nobody vouches for the reference of {len(doubtful)} samples ({listed}); a wrong reference "
            "looks like a failure of the model",
            file_name,
            'write reference_source "person" into lines that a person wrote',
        )


def _read_sample(example: Example, file_name: str) -> tuple[Sample | None, list[Fault]]:
    where = f"{file_name}: {shown(example.id)}"
    faults: list[Fault] = []
    scoring = _read_scoring(example.extra.get("scoring"), where, faults)
    checks = _read_checks(example.extra.get("checks"), where, faults)
    reference = example.reference
    if faults or reference is None:
        return None, faults
    return Sample(
        example=example,
        reference=reference,
        expected=_structure_of(reference),
        scoring=scoring,
        checks=checks,
    ), []


def _structure_of(reference: str) -> Any:
    try:
        value = parse_json(reference)
    except JsonTextError:
        return None
    return value if isinstance(value, dict | list) else None


def _read_scoring(document: Any, where: str, faults: list[Fault]) -> ScoringRule | None:
    if document is None:
        return None
    try:
        rule = parse_scoring_rule(document)
    except ScoringRuleError as error:
        faults.append(Fault("scoring-invalid", shown(error), where))
        return None
    if isinstance(rule, ChoiceRule):
        faults.append(
            Fault("scoring-invalid", "a choice is scored by likelihood; a triage looks at answers", where)
        )
        return None
    return rule


def _read_checks(document: Any, where: str, faults: list[Fault]) -> SampleChecks:
    if document is None:
        return SampleChecks()
    if not isinstance(document, Mapping):
        faults.append(Fault("checks-invalid", "checks must be an object", where))
        return SampleChecks()
    faults.extend(
        Fault("checks-invalid", f"checks has no {shown(key)!r}; it has {', '.join(_CHECK_KEYS)}", where)
        for key in document
        if key not in _CHECK_KEYS
    )
    limit = document.get("max_characters")
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        faults.append(
            Fault("checks-invalid", "checks.max_characters must be a whole number from 1 on", where)
        )
        limit = None
    return SampleChecks(
        required_points=_read_texts(document, "required_points", where, faults),
        forbidden_phrases=_read_texts(document, "forbidden_phrases", where, faults),
        max_characters=limit,
    )


def _read_texts(document: Mapping[str, Any], key: str, where: str, faults: list[Fault]) -> tuple[str, ...]:
    texts = document.get(key, [])
    is_list = isinstance(texts, list) and len(texts) <= MAX_POINTS
    if not is_list or not all(isinstance(text, str) and text.strip() for text in texts):
        message = f"checks.{key} must be a list of at most {MAX_POINTS} texts that are not empty"
        faults.append(Fault("checks-invalid", message, where))
        return ()
    return tuple(texts)
