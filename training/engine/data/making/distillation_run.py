"""A distillation from inputs to files: examples, unanswered inputs, pairs for people, and a report."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from training.engine.data.example_files import WrittenFile, iterate_examples, write_examples
from training.engine.data.examples import Example
from training.engine.data.making.deflavouring import FlavourCounter, FlavourReport, FlavourStripper
from training.engine.data.making.distillation import CandidateSource, DistilledInput, distil, plan_sources
from training.engine.data.making.distillation_settings import DistillationSettings
from training.engine.data.making.generator import Teacher, TextGenerator
from training.engine.data.making.judging import JudgeTally
from training.engine.data.making.review_pairs import ReviewAnswer, ReviewPair, ReviewSelection
from training.engine.progress import ProgressReporter

NUM_HISTOGRAM_BINS = 10
MAX_SHOWN_CHARACTERS = 400
_DISTILLED_FRACTION = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCounts:
    """What one source of candidates gave.

    Attributes:
        candidate: The number of its candidates.
        teacher: Who answers.
        variant: 1-based number of the instruction.
        generator: Identity of the model.
        num_candidates: Answers that were asked for.
        num_acceptable: Of these, those that passed the checks.
        num_chosen: Of these, those that became examples.
        rejections: How many were rejected for each reason; one may have several.
    """

    candidate: int
    teacher: str
    variant: int
    generator: Mapping[str, Any]
    num_candidates: int
    num_acceptable: int
    num_chosen: int
    rejections: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return the form used in reports."""
        return {
            "candidate": self.candidate,
            "teacher": self.teacher,
            "variant": self.variant,
            "generator": dict(self.generator),
            "num_candidates": self.num_candidates,
            "num_acceptable": self.num_acceptable,
            "num_chosen": self.num_chosen,
            "rejections": dict(self.rejections),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillationReport:
    """What a distillation did.

    Attributes:
        num_inputs: Inputs that came in; each is an example or unanswered.
        num_examples: Examples that were made.
        num_unanswered: Inputs without one.
        unanswered_reasons: How many for each reason.
        num_answers_replaced: Examples whose input came with an answer of its own.
        agreement_histogram: Examples whose agreement lies in 0-0.1, 0.1-0.2, ..., 0.9-1; the upper bound
            belongs to the last bin only.
        num_alone: Examples with one acceptable candidate, so without agreement.
        mean_agreement: Over the examples that have one, 0-1; None when none has.
        teacher_fractions: Part of the examples that each teacher's answers make up, 0-1.
        sources: The counts of each candidate number.
        judge: What the judge did; None without one.
        is_judge_a_teacher: Whether the judge is one of the teachers and may prefer its own words.
        flavour: What de-flavouring did; None when it was off or the answers are JSON.
        num_pairs: Review pairs by part.
    """

    num_inputs: int
    num_examples: int
    num_unanswered: int
    unanswered_reasons: Mapping[str, int]
    num_answers_replaced: int
    agreement_histogram: tuple[int, ...]
    num_alone: int
    mean_agreement: float | None
    teacher_fractions: Mapping[str, float]
    sources: tuple[SourceCounts, ...]
    judge: JudgeTally | None
    is_judge_a_teacher: bool
    flavour: FlavourReport | None
    num_pairs: Mapping[str, int]

    def to_json(self) -> dict[str, Any]:
        """Return the form used in report.json."""
        return {
            "num_inputs": self.num_inputs,
            "num_examples": self.num_examples,
            "num_unanswered": self.num_unanswered,
            "unanswered_reasons": dict(self.unanswered_reasons),
            "num_answers_replaced": self.num_answers_replaced,
            "agreement_histogram": list(self.agreement_histogram),
            "num_alone": self.num_alone,
            "mean_agreement": self.mean_agreement,
            "teacher_fractions": dict(self.teacher_fractions),
            "sources": [source.to_json() for source in self.sources],
            "judge": None if self.judge is None else self.judge.to_json(),
            "is_judge_a_teacher": self.is_judge_a_teacher,
            "flavour": None if self.flavour is None else self.flavour.to_json(),
            "num_pairs": dict(self.num_pairs),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class DistillationResult:
    """What came out.

    Attributes:
        written: The file of examples.
        pairs: What people should look at.
        report: Counts.
    """

    written: WrittenFile
    pairs: tuple[ReviewPair, ...]
    report: DistillationReport


def run_distillation(
    inputs: Iterable[Example],
    *,
    teachers: Sequence[Teacher],
    settings: DistillationSettings,
    target: Path,
    unanswered: IO[str],
    scratch: Path,
    progress: ProgressReporter,
    judge: TextGenerator | None = None,
    num_inputs: int | None = None,
) -> DistillationResult:
    """Answer inputs by teachers and write the examples.

    Args:
        inputs: Examples with unique ids; see ``distil``.
        teachers: Models and instructions.
        settings: What decides the rest.
        target: File of examples, written whole or not at all.
        unanswered: Takes one line of JSON for each input that stays unanswered: reasons, the candidates with
            theirs, and the input.
        scratch: Folder for the answers as they were before de-flavouring.
        progress: Takes progress.
        judge: Compares free-text answers; see ``distil``.
        num_inputs: For the progress; None when it is not known.

    Raises:
        ConfigInvalid: teachers and instructions do not give enough candidates.
        GenerationFailed: a generator left prompts out.
    """
    sources = plan_sources(teachers, settings.num_candidates)
    tally = DistillationTally(sources)
    flavours = FlavourCounter()
    selection = ReviewSelection(
        num_lowest=settings.num_lowest_for_people,
        num_control=settings.num_control_for_people,
        seed=settings.seed,
    )
    strips = settings.flavour is not None and settings.answer_format == "text"

    def made() -> Iterator[Example]:
        for item in distil(inputs, teachers=teachers, settings=settings, judge=judge):
            tally.add(item)
            selection.add(item)
            if item.example is None:
                unanswered.write(json.dumps(describe_unanswered(item), ensure_ascii=True) + "\n")
            else:
                flavours.add(item.ranked[0].candidate.teacher, item.ranked[0].candidate.text)
                yield item.example
            if tally.num_inputs % settings.num_inputs_per_round == 0 or tally.num_inputs == num_inputs:
                done = tally.num_inputs / num_inputs if num_inputs else 0.0
                progress.progress(_DISTILLED_FRACTION * min(1.0, done), f"{tally.num_inputs} inputs answered")

    raw = write_examples(scratch / "distilled.jsonl", made())
    pairs, flavour = selection.pairs(), None
    if strips and settings.flavour is not None:
        instructions = [source.instruction for source in sources]
        stripper = FlavourStripper(
            flavours.find_stock_phrases(settings.flavour),
            settings=settings.flavour,
            instructions=instructions,
        )
        written = write_examples(target, _strip_all(iterate_examples(raw.path), stripper))
        pairs = tuple(_strip_pair(pair, stripper) for pair in pairs)
        flavour = stripper.report()
    else:
        written = write_examples(target, iterate_examples(raw.path))
    raw.path.unlink()
    progress.progress(1.0, f"{written.num_examples} examples made")
    report = tally.report(judge=judge, flavour=flavour, pairs=pairs)
    return DistillationResult(written=written, pairs=pairs, report=report)


def describe_unanswered(item: DistilledInput) -> dict[str, Any]:
    """Return what is written of an input that stays unanswered; outputs are cut to 400 characters."""
    acceptable: list[dict[str, Any]] = [
        {
            "candidate": ranked.candidate.number,
            "teacher": ranked.candidate.teacher,
            "reasons": [],
            "agreement": ranked.agreement,
            "text": ranked.candidate.text[:MAX_SHOWN_CHARACTERS],
        }
        for ranked in item.ranked
    ]
    rejected: list[dict[str, Any]] = [
        {
            "candidate": entry.candidate.number,
            "teacher": entry.candidate.teacher,
            "reasons": list(entry.reasons),
            "detail": entry.detail[:MAX_SHOWN_CHARACTERS],
            "text": entry.candidate.text[:MAX_SHOWN_CHARACTERS],
        }
        for entry in item.rejected
    ]
    return {
        "reasons": list(item.reasons),
        "candidates": acceptable + rejected,
        "example": item.source.to_json(),
    }


class DistillationTally:
    """Counts what became of inputs.

    Args:
        sources: Of the candidates.
    """

    def __init__(self, sources: Sequence[CandidateSource]) -> None:
        self._sources = tuple(sources)
        self.num_inputs = self._num_alone = self._num_replaced = 0
        self._reasons: Counter[str] = Counter()
        self._acceptable: Counter[int] = Counter()
        self._chosen: Counter[int] = Counter()
        self._rejections: dict[int, Counter[str]] = {source.number: Counter() for source in self._sources}
        self._asked: Counter[int] = Counter()
        self._bins = [0] * NUM_HISTOGRAM_BINS
        self._agreement_sum = 0.0
        self._judged = JudgeTally()

    def add(self, item: DistilledInput) -> None:
        """Count one input."""
        self.num_inputs += 1
        self._reasons.update(item.reasons)
        self._acceptable.update(ranked.candidate.number for ranked in item.ranked)
        self._asked.update(ranked.candidate.number for ranked in item.ranked)
        for rejected in item.rejected:
            self._asked[rejected.candidate.number] += 1
            self._rejections[rejected.candidate.number].update(rejected.reasons)
        if item.judged is not None:
            self._judged += item.judged
        if item.example is not None:
            self._add_example(item)

    def report(
        self, *, judge: TextGenerator | None, flavour: FlavourReport | None, pairs: Sequence[ReviewPair]
    ) -> DistillationReport:
        """Return the report of all that was counted."""
        num_examples = self._chosen.total()
        num_agreeing = sum(self._bins)
        by_teacher: Counter[str] = Counter()
        for source in self._sources:
            by_teacher[source.teacher.name] += self._chosen[source.number]
        identities = [dict(source.teacher.generator.identity) for source in self._sources]
        return DistillationReport(
            num_inputs=self.num_inputs,
            num_examples=num_examples,
            num_unanswered=self.num_inputs - num_examples,
            unanswered_reasons=dict(self._reasons.most_common()),
            num_answers_replaced=self._num_replaced,
            agreement_histogram=tuple(self._bins),
            num_alone=self._num_alone,
            mean_agreement=round(self._agreement_sum / num_agreeing, 4) if num_agreeing else None,
            teacher_fractions={
                name: round(num / num_examples, 4) if num_examples else 0.0
                for name, num in by_teacher.items()
            },
            sources=tuple(self._count_source(source) for source in self._sources),
            judge=None if judge is None else self._judged,
            is_judge_a_teacher=judge is not None and dict(judge.identity) in identities,
            flavour=flavour,
            num_pairs={part: sum(pair.part == part for pair in pairs) for part in ("lowest", "control")},
        )

    def _add_example(self, item: DistilledInput) -> None:
        best = item.ranked[0]
        self._chosen[best.candidate.number] += 1
        # A log's empty answer cell is no answer.
        self._num_replaced += bool((item.source.answer or "").strip())
        if best.agreement is None:
            self._num_alone += 1
            return
        self._agreement_sum += best.agreement
        # Whole numbers, so that no bound slips into the bin below it.
        place = round(best.agreement * 10_000) * NUM_HISTOGRAM_BINS // 10_000
        self._bins[min(place, NUM_HISTOGRAM_BINS - 1)] += 1

    def _count_source(self, source: CandidateSource) -> SourceCounts:
        return SourceCounts(
            candidate=source.number,
            teacher=source.teacher.name,
            variant=source.variant,
            generator=dict(source.teacher.generator.identity),
            num_candidates=self._asked[source.number],
            num_acceptable=self._acceptable[source.number],
            num_chosen=self._chosen[source.number],
            rejections=dict(self._rejections[source.number].most_common()),
        )


def _strip_all(examples: Iterable[Example], stripper: FlavourStripper) -> Iterator[Example]:
    for example in examples:
        answer = example.answer or ""
        stripped = stripper.strip_and_count(example.origin["teacher"], answer, example_id=example.example_id)
        if not stripped.removed:
            yield example
            continue
        origin = {**example.origin, "deflavoured": True}
        yield example.with_answer(stripped.text).with_fields(origin=origin)


def _strip_pair(pair: ReviewPair, stripper: FlavourStripper) -> ReviewPair:
    def strip(answer: ReviewAnswer) -> ReviewAnswer:
        return replace(answer, text=stripper.strip(answer.teacher, answer.text).text)

    top = strip(pair.top)
    bottom = None if pair.bottom is None else strip(pair.bottom)
    if bottom is not None and bottom.text == top.text:
        bottom = None
    return replace(pair, top=top, bottom=bottom)
