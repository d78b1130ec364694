"""Distillation: several answers of teacher models to each input, the best as the example (MISSION C5).

Each candidate is checked by itself (``acceptance``), the acceptable ones are ranked against each other
(``ranking``, ``judging``), and the first becomes the example. Nothing that a model said is called confirmed:
``reference_source`` is "model" and there is no ``confirmed_by``. An input without an acceptable candidate is
given back with the reasons. ``distillation_run`` runs this from inputs to files.
"""

import itertools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from registry.artifacts.findings import shown
from training.engine.data.examples import ChatMessage, Example
from training.engine.data.making.acceptance import AnswerRules, check_answer
from training.engine.data.making.distillation_settings import DistillationSettings
from training.engine.data.making.fault_lists import refuse_if_faulty
from training.engine.data.making.generator import (
    Generated,
    Prompt,
    Teacher,
    TextGenerator,
    digest_prompt,
    generate_texts,
)
from training.engine.data.making.judging import Contest, JudgedContest, JudgeTally, judge_contests
from training.engine.data.making.ranking import (
    Candidate,
    RankedCandidate,
    measure_agreements,
    rank_candidates,
    tabulate_overlaps,
)
from training.engine.data.making.structured_answers import compare_fields, to_compact_json
from training.engine.errors import ConfigInvalid, Fault


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateSource:
    """Where the candidates of one number come from, the same for every input.

    Attributes:
        number: 1-based.
        teacher: Who answers.
        variant: 1-based number of its instruction.
    """

    number: int
    teacher: Teacher
    variant: int

    @property
    def instruction(self) -> str:
        """The text of the instruction."""
        return self.teacher.instruction_variants[self.variant - 1]


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedCandidate:
    """A candidate that is no answer.

    Attributes:
        candidate: It, with its raw output.
        reasons: Codes of ``acceptance.CheckedAnswer``.
        detail: For people.
    """

    candidate: Candidate
    reasons: tuple[str, ...]
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DistilledInput:
    """What became of one input.

    Attributes:
        source: The input as it came.
        example: The input with the first candidate as its answer; None when it stays unanswered.
        ranked: Acceptable candidates, the best first.
        rejected: The others.
        reasons: Why it stays unanswered: ``last-turn-not-the-users``, ``no-acceptable-candidate``,
            ``low-agreement``; empty when there is an example.
        judged: What the judge did; None when it was not asked.
    """

    source: Example
    example: Example | None = None
    ranked: tuple[RankedCandidate, ...] = ()
    rejected: tuple[RejectedCandidate, ...] = ()
    reasons: tuple[str, ...] = ()
    judged: JudgeTally | None = None


def distil(
    inputs: Iterable[Example],
    *,
    teachers: Sequence[Teacher],
    settings: DistillationSettings,
    judge: TextGenerator | None = None,
) -> Iterator[DistilledInput]:
    """Answer inputs by teachers; the results come in the order of the inputs, one round at a time.

    Args:
        inputs: Examples with or without an answer; an answer is not shown to the teachers and is replaced.
        teachers: Models and instructions.
        settings: What decides the rest.
        judge: Compares acceptable free-text candidates pair by pair; better not one of the teachers. None
            ranks by overlap alone.

    Raises:
        ConfigInvalid: ``sources-invalid`` when teachers and instructions do not give enough different
            candidates.
        GenerationFailed: a generator left prompts out.
    """
    sources = plan_sources(teachers, settings.num_candidates)
    rules = settings.answer_rules()
    remaining = iter(inputs)
    while batch := list(itertools.islice(remaining, settings.num_inputs_per_round)):
        yield from _distil_round(batch, sources, rules, settings, judge)


def plan_sources(teachers: Sequence[Teacher], num_candidates: int) -> tuple[CandidateSource, ...]:
    """Choose who makes which candidate: the first instruction of every teacher, then the second ones.

    Raises:
        ConfigInvalid: ``sources-invalid`` with every fault: ``duplicate-teacher``, ``source-twice`` (the same
            model with the same instruction, which greedy decoding answers in the same way),
            ``too-few-sources``.
    """
    faults: list[Fault] = []
    names = [teacher.name for teacher in teachers]
    for name in sorted({name for name in names if names.count(name) > 1}):
        message = f"the name {shown(name)!r} is used by several teachers"
        faults.append(Fault(code="duplicate-teacher", message=message, where="teachers"))
    longest = max((len(teacher.instruction_variants) for teacher in teachers), default=0)
    pairs = [
        (teacher, variant)
        for variant in range(1, longest + 1)
        for teacher in teachers
        if variant <= len(teacher.instruction_variants)
    ]
    seen: set[tuple[str, str]] = set()
    for teacher, variant in pairs:
        source = (
            to_compact_json(dict(teacher.generator.identity)),
            teacher.instruction_variants[variant - 1],
        )
        if source in seen:
            message = f"instruction {variant} is given to the same model twice and would be answered alike"
            faults.append(
                Fault(code="source-twice", message=message, where=f"teachers.{shown(teacher.name)}")
            )
        seen.add(source)
    if len(pairs) < num_candidates:
        message = f"{len(pairs)} pairs of teacher and instruction for {num_candidates} candidates"
        remedy = "Add instruction variants or teachers, or ask for fewer candidates."
        faults.append(
            Fault(code="too-few-sources", message=f"{message}. {remedy}", where="teachers", remedy=remedy)
        )
    refuse_if_faulty(ConfigInvalid, "sources-invalid", "The list of teachers", faults)
    return tuple(
        CandidateSource(number=number, teacher=teacher, variant=variant)
        for number, (teacher, variant) in enumerate(pairs[:num_candidates], start=1)
    )


def build_teacher_prompt(example: Example, instruction: str, rules: AnswerRules) -> Prompt:
    """Return an input's conversation, without its answer, under an instruction instead of its own system
    message.
    """
    turns = _question_of(example)
    own = "\n".join(message.content for message in turns if message.role == "system")
    schema = "" if rules.schema is None else rules.schema.text
    system = instruction.replace("{schema}", schema).replace("{system}", own).strip()
    others = tuple(message for message in turns if message.role != "system")
    return (ChatMessage("system", system), *others) if system else others


def _distil_round(
    batch: Sequence[Example],
    sources: Sequence[CandidateSource],
    rules: AnswerRules,
    settings: DistillationSettings,
    judge: TextGenerator | None,
) -> Iterator[DistilledInput]:
    askable = [example for example in batch if _can_be_asked(example)]
    candidates = _generate_candidates(askable, sources, rules, settings.max_tokens)
    compared = [[candidate for candidate, rejected in row if rejected is None] for row in candidates]
    judged = _judge(askable, compared, settings, judge) if judge is not None and not rules.is_json else {}
    place = 0
    for example in batch:
        if not _can_be_asked(example):
            yield DistilledInput(source=example, reasons=("last-turn-not-the-users",))
            continue
        verdict = judged.get(place)
        ranked = _rank(compared[place], rules, settings, verdict)
        rejected = tuple(item for _, item in candidates[place] if item is not None)
        tally = None if verdict is None else verdict.tally
        yield _conclude(example, ranked, rejected, tally, sources, settings)
        place += 1


def _generate_candidates(
    examples: Sequence[Example], sources: Sequence[CandidateSource], rules: AnswerRules, max_tokens: int
) -> list[list[tuple[Candidate, RejectedCandidate | None]]]:
    """Return each example's candidates in the order of their numbers; each teacher is called once."""
    by_teacher: defaultdict[str, list[CandidateSource]] = defaultdict(list)
    for source in sources:
        by_teacher[source.teacher.name].append(source)
    outputs: dict[int, list[tuple[Prompt, Generated]]] = {}
    for own in by_teacher.values():
        prompts = [
            build_teacher_prompt(example, source.instruction, rules) for source in own for example in examples
        ]
        answers = list(
            zip(
                prompts, generate_texts(own[0].teacher.generator, prompts, max_tokens=max_tokens), strict=True
            )
        )
        for place, source in enumerate(own):
            outputs[source.number] = answers[place * len(examples) : (place + 1) * len(examples)]
    return [
        [_read_candidate(source, *outputs[source.number][place], rules) for source in sources]
        for place in range(len(examples))
    ]


def _read_candidate(
    source: CandidateSource, prompt: Prompt, output: Generated, rules: AnswerRules
) -> tuple[Candidate, RejectedCandidate | None]:
    answer = check_answer(output, rules)
    candidate = Candidate(
        number=source.number,
        teacher=source.teacher.name,
        variant=source.variant,
        prompt_sha256=digest_prompt(prompt),
        text=answer.text,
        fields=answer.fields,
    )
    if not answer.reasons:
        return candidate, None
    return candidate, RejectedCandidate(candidate=candidate, reasons=answer.reasons, detail=answer.detail)


def _judge(
    examples: Sequence[Example],
    compared: Sequence[Sequence[Candidate]],
    settings: DistillationSettings,
    judge: TextGenerator,
) -> Mapping[int, JudgedContest]:
    places = [place for place, candidates in enumerate(compared) if len(candidates) > 1]
    contests = [
        Contest(
            question=examples[place].input_text,
            answers=tuple(candidate.text for candidate in compared[place]),
        )
        for place in places
    ]
    results = judge_contests(judge, contests, instruction=settings.judge_instruction)
    return dict(zip(places, results, strict=True))


def _rank(
    candidates: Sequence[Candidate],
    rules: AnswerRules,
    settings: DistillationSettings,
    judged: JudgedContest | None,
) -> tuple[RankedCandidate, ...]:
    if rules.is_json:
        table = [[compare_fields(row.fields, column.fields) for column in candidates] for row in candidates]
    else:
        table = tabulate_overlaps([candidate.text for candidate in candidates])
    return rank_candidates(
        candidates,
        measure_agreements(table),
        judge_scores=None if judged is None else judged.scores,
        judge_weight=settings.judge_weight,
    )


def _conclude(
    source: Example,
    ranked: tuple[RankedCandidate, ...],
    rejected: tuple[RejectedCandidate, ...],
    judged: JudgeTally | None,
    sources: Sequence[CandidateSource],
    settings: DistillationSettings,
) -> DistilledInput:
    result = DistilledInput(source=source, ranked=ranked, rejected=rejected, judged=judged)
    if not ranked:
        return replace(result, reasons=("no-acceptable-candidate",))
    if (ranked[0].agreement or 0.0) < settings.min_agreement:
        return replace(result, reasons=("low-agreement",))
    return replace(result, example=_make_example(source, ranked[0], sources))


def _make_example(source: Example, best: RankedCandidate, sources: Sequence[CandidateSource]) -> Example:
    candidate = best.candidate
    origin: dict[str, Any] = {
        **source.origin,
        "kind": "distilled",
        "teacher": candidate.teacher,
        "generator": dict(sources[candidate.number - 1].teacher.generator.identity),
        "candidate": candidate.number,
        "variant": candidate.variant,
        "agreement": best.agreement,
        "prompt_sha256": candidate.prompt_sha256,
    }
    if best.judge_score is not None:
        origin["judge_score"] = round(best.judge_score, 4)
    fields = {key: value for key, value in source.fields.items() if key != "confirmed_by"}
    fields.update(reference_source="model", origin=origin)
    messages = (*_question_of(source), ChatMessage("assistant", candidate.text))
    return replace(source, messages=messages, fields=fields)


def _question_of(example: Example) -> tuple[ChatMessage, ...]:
    return example.messages[:-1] if example.answer is not None else example.messages


def _can_be_asked(example: Example) -> bool:
    turns = _question_of(example)
    return bool(turns) and turns[-1].role == "user" and bool(turns[-1].content.strip())
