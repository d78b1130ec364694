"""Watches a training and tells what it recognises, each symptom once, resource faults first.

It never changes the training and never raises because of what it sees.
"""

from collections.abc import Iterable, Sequence

from registry.artifacts.findings import Severity
from training.engine.monitor.catalogue import RULES
from training.engine.monitor.findings import Finding, split_held_back
from training.engine.monitor.history import RunFacts, RunHistory
from training.engine.monitor.journal import StepJournal
from training.engine.monitor.reported import describe_not_finite, describe_out_of_memory
from training.engine.monitor.rule import Moment, StepRule
from training.engine.progress import RunReporter
from training.engine.step_record import HeldOutRecord, StepRecord

RECORD_NAME = "finding"


class Monitor:
    """A `StepObserver` that applies the rules.

    After a resumption the records before the checkpoint are read from the journal and judged again: rules are
    pure, so the same findings come as in a run without a break, and they are reported again under this
    attempt. Without a journal, or with one that lacks steps, rules that need the start of the run keep silent
    and the others begin with empty windows; steps that are done again after a checkpoint are not counted
    twice, because the history begins with the first step of this attempt.

    Attributes:
        findings: All that were told, in the order in which they were.
        held_back: Those that are not told while a resource or numeric fault is open.
        history: The numbers seen.
    """

    def __init__(
        self,
        report: RunReporter,
        *,
        facts: RunFacts | None = None,
        journal: StepJournal | None = None,
        rules: Sequence[StepRule] = RULES,
    ) -> None:
        """Begin watching.

        Args:
            report: Receives a record "finding" and a log line for each finding.
            facts: What is known before the first step.
            journal: Keeps what was seen, for a resumption; None keeps nothing.
            rules: The rules applied.
        """
        self._report = report
        self._journal = journal
        self._rules = tuple(rules)
        self._codes: set[str] = set()
        self.history = RunHistory(facts or RunFacts())
        self.findings: list[Finding] = []
        self.held_back: list[Finding] = []

    def on_step(self, record: StepRecord) -> None:
        """Take one optimiser step."""
        if self._journal is not None:
            if not len(self.history):
                for earlier in self._journal.take_over(before_step=record.step):
                    self._see(earlier)
            self._journal.append(record)
        self._see(record)

    def on_held_out(self, record: HeldOutRecord) -> None:
        """Take one measurement of the held-out loss."""
        if self._journal is not None and len(self.history):
            self._journal.append(record)
        self._see(record)

    def on_not_finite(self, *, step: int, what: str) -> None:
        """Take that the loss or gradient of a step is not finite (see `describe_not_finite`)."""
        self._tell([describe_not_finite(step=step, what=what)])

    def on_out_of_memory(
        self,
        *,
        step: int | None = None,
        batch_lengths: Sequence[int] = (),
        row_lengths: Sequence[int] = (),
        is_evaluation: bool = False,
    ) -> None:
        """Take that memory ran out.

        Args:
            step: The step in which it happened; None takes the one after the last that was seen.
            batch_lengths: See `describe_out_of_memory`, also for the others.
            row_lengths: Likewise.
            is_evaluation: Likewise.
        """
        if step is None:
            step = self.history.last_step + (not is_evaluation) if len(self.history) else 1
        finding = describe_out_of_memory(
            step=step,
            batch_lengths=batch_lengths,
            row_lengths=row_lengths,
            is_evaluation=is_evaluation,
            has_grown="monitor/memory-grows" in self._codes,
        )
        self._tell([finding])

    def _see(self, record: StepRecord | HeldOutRecord) -> None:
        if isinstance(record, StepRecord):
            self.history.add_step(record)
            self._apply(Moment.STEP)
        else:
            self.history.held_out.append(record)
            self._apply(Moment.HELD_OUT)

    def _apply(self, moment: Moment) -> None:
        seen: dict[str, Finding] = {}
        for rule in self._rules:
            if rule.moment is not moment or not self._codes.isdisjoint(rule.codes):
                continue
            if rule.needs_start and not self.history.begins_at_start:
                continue
            finding = rule.check(self.history)
            if finding is not None:
                seen.setdefault(finding.code, finding)
        self._tell(seen.values())

    def _tell(self, found: Iterable[Finding]) -> None:
        new = [finding for finding in found if finding.code not in self._codes]
        self._codes |= {finding.code for finding in new}
        told, held_back = split_held_back(new, known=self.findings)
        for finding in told:
            self.findings.append(finding)
            self._report.record(RECORD_NAME, finding.to_json())
            self._report.log(finding.severity.value, f"{finding.message} First: {finding.treatment}")
        self.held_back += held_back
        if held_back:
            cause = next(finding for finding in self.findings if finding.spoils_observation)
            codes = ", ".join(finding.code for finding in held_back)
            self._report.log(
                Severity.INFO.value,
                f"Held back until {cause.row.value} is mended, which spoils them: {codes}.",
            )
