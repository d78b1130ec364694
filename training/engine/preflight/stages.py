"""The preflight of a training: its stages in order, its report, and the refusal when a check failed."""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final

from transformers import PreTrainedModel

from training.engine.chat import ChatTokenizer
from training.engine.config import TrainingConfig
from training.engine.device import Precision
from training.engine.errors import TrainingEngineError, TrainingFailed
from training.engine.fingerprint import list_libraries
from training.engine.handbook.rows import HandbookRow
from training.engine.packing.isolation import check_isolation
from training.engine.preflight.data_stage import iterate_batches, look_at_data, view_training_data
from training.engine.preflight.first_step import examine_first_step
from training.engine.preflight.outcomes import failed, passed, skipped
from training.engine.preflight.overfit import (
    borrowed_model,
    identify_base,
    identify_overfit,
    known_overfit,
    try_overfit,
)
from training.engine.preflight.refusals import as_failed_check
from training.engine.preflight.report import (
    CheckResult,
    FirstStepResult,
    OverfitResult,
    PreflightReport,
    ShownRow,
)
from training.engine.process_group import ProcessGroup, SingleProcess
from training.engine.progress import RunReporter
from training.engine.random_state import own_random_state
from training.engine.step_plan import StepPlan
from training.engine.training_rows import TrainingRows, read_training_rows

RECORD_NAME: Final = "preflight"
FAILURE_CODE: Final = "preflight-failed"


class Preflight:
    """The trials before the first step.

    Call `read_rows` before the base is loaded, `try_model` on the base before it is made into what is
    trained, and `conclude`. The base, the rows and torch's random state are left as they were.

    Args:
        base_model: Hugging Face folder.
        config: Of the training.
        report: Receives the record "preflight", and progress.
        base_identity: Digest of the base; None takes its cheap identity, see `identify_base`.
        known_overfits: Fingerprints of attempts at overfitting that passed before; one of these is not made
            again where the configuration says "auto".
        group: The processes that train together.
    """

    def __init__(
        self,
        *,
        base_model: Path,
        config: TrainingConfig,
        report: RunReporter,
        base_identity: str | None = None,
        known_overfits: Collection[str] = (),
        group: ProcessGroup | None = None,
    ) -> None:
        self._base_model = base_model
        self._config = config
        self._report = report
        self._base_identity = base_identity
        self._known = frozenset(known_overfits)
        self._group = group or SingleProcess()
        self._checks: list[CheckResult] = []
        self._batches: tuple[tuple[ShownRow, ...], ...] = ()
        self._overfit: OverfitResult | None = None
        self._first_step: FirstStepResult | None = None
        self._chat_template: str | None = None

    @property
    def result(self) -> PreflightReport:
        """All that was found so far."""
        return PreflightReport(
            checks=tuple(self._checks),
            batches=self._batches,
            overfit=self._overfit,
            first_step=self._first_step,
        )

    def read_rows(
        self, tokenizer: ChatTokenizer, *, training_data: Path, holdout: Path | None
    ) -> TrainingRows:
        """Read the rows of the training and make the checks of the data; a refusal of the rendering is a
        failed check.

        Args:
            tokenizer: Of the base.
            training_data: JSONL file or folder.
            holdout: Likewise; None without.

        Raises:
            TrainingFailed: ``preflight-failed``, after the report was recorded.
            DataInvalid: Files that cannot be read.
        """
        template: Any = getattr(tokenizer, "chat_template", None)
        self._chat_template = None if template is None else str(template)
        try:
            rows = read_training_rows(
                tokenizer,
                training_data=training_data,
                holdout=holdout,
                config=self._config,
                report=self._report,
            )
        except TrainingEngineError as error:
            self._checks.append(as_failed_check(error))
            self.conclude()
            raise
        self._report.progress(0.005, "looking at the data")
        view = view_training_data(
            tokenizer,
            rows,
            self._config,
            base_model=self._base_model,
            training_data=training_data,
            holdout=holdout,
        )
        found = look_at_data(view, iterate_batches(rows, self._config))
        self._checks += found.checks
        self._batches = found.batches
        if not self.result.passed:
            self.conclude()
        return rows

    def try_model(self, base: PreTrainedModel, rows: TrainingRows, precision: Precision) -> None:
        """Learn a few examples by heart, examine the first step, and try out packing where it is on.

        Args:
            base: Loaded for this training, without an adapter.
            rows: From `read_rows`.
            precision: Of the training.
        """
        if self._config.training.packing:
            self._try_packing(base, rows, precision)
        if self._config.method == "full" and self._group.size > 1:
            message = (
                "weights that are shared out over several processes are looked at in the first step itself"
            )
            self._checks += [skipped("overfit", message), skipped("gradients-arrive", message)]
            return
        self._try_overfit(base, rows, precision)
        self._examine(base, rows, precision)
        self._agree()

    def conclude(self) -> PreflightReport:
        """Record the report and return it.

        Raises:
            TrainingFailed: ``preflight-failed``, with a fault for each failed check.
        """
        result = self.result
        self._report.record(RECORD_NAME, result.to_json())
        if not result.passed:
            raise refuse(result)
        return result

    def _agree(self) -> None:
        """Fail in every process when it failed in one: rounding differs between them, and who goes on alone
        waits for ever.
        """
        (num_failed,) = self._group.sum_numbers(float(not self.result.passed))
        if num_failed and self.result.passed:
            message = (
                f"the preflight failed in {num_failed:.0f} of {self._group.size} processes, not in this one"
            )
            self._checks.append(
                failed(
                    "other-processes",
                    HandbookRow.CANNOT_OVERFIT,
                    message,
                    remedy="Look at the report of those processes, or run the preflight in one process.",
                )
            )

    def _try_packing(self, base: PreTrainedModel, rows: TrainingRows, precision: Precision) -> None:
        shortest = sorted(rows.training, key=lambda row: len(row.input_ids))
        try:
            found = check_isolation(base, shortest, pad_token_id=rows.pad_token_id, precision=precision)
        except TrainingFailed as error:
            self._checks.append(as_failed_check(error))
            return
        self._checks.append(
            passed(
                "packing-isolated",
                f"{found.num_rows} packed rows do not see each other: their logits differ from those of the "
                f"rows alone by {found.alone_difference:.2g} of the largest (allowed: {found.tolerance:.2g})",
            )
        )

    def _try_overfit(self, base: PreTrainedModel, rows: TrainingRows, precision: Precision) -> None:
        fingerprint = identify_overfit(
            base_identity=self._base_identity or identify_base(self._base_model),
            chat_template=self._chat_template,
            libraries=list_libraries(self._config.method),
            config=self._config,
            precision=precision,
        )
        if self._config.preflight.overfit == "auto" and fingerprint in self._known:
            attempt = known_overfit(fingerprint)
        else:
            self._report.progress(0.015, "learning a few examples by heart")
            attempt = try_overfit(
                base,
                rows.training,
                self._config,
                precision,
                pad_token_id=rows.pad_token_id,
                fingerprint=fingerprint,
            )
        self._overfit = attempt.result
        self._checks.append(attempt.check)

    def _examine(self, base: PreTrainedModel, rows: TrainingRows, precision: Precision) -> None:
        self._report.progress(0.02, "examining the first step")
        plan = StepPlan(rows.training, self._config.training, pad_token_id=rows.pad_token_id)
        _, batches = next(iter(plan.iterate(after_step=0)))
        try:
            with (
                own_random_state(precision.device, self._config.training.seed),
                borrowed_model(base, self._config) as model,
            ):
                loss = model.prepare(
                    min(batches, key=lambda batch: batch.num_tokens).to(precision.device),
                    precision,
                    gradient_checkpointing=self._config.training.gradient_checkpointing,
                )
                found = examine_first_step(
                    model, loss, batches, self._config, precision, pad_token_id=rows.pad_token_id
                )
        except TrainingEngineError as error:
            self._checks.append(as_failed_check(error))
            return
        self._first_step = found.result
        self._checks += found.checks


def refuse(result: PreflightReport) -> TrainingFailed:
    """Return the error of a preflight that failed: its rows of the handbook, and what to do."""
    listed = "; ".join(
        f"{check.code}"
        + (f" (handbook: {check.row.value})" if check.row else "")
        + f": {check.message}. {check.remedy}".rstrip()
        for check in _first_per_row(result.failed)
    )
    return TrainingFailed(
        FAILURE_CODE,
        f"The preflight failed {len(result.failed)} of {len(result.checks)} checks, and training was not "
        f"begun. {listed}",
        faults=result.faults,
    )


def _first_per_row(checks: Iterable[CheckResult]) -> list[CheckResult]:
    """Return one check for each row of the handbook, so that the message stays readable."""
    first: dict[Any, CheckResult] = {}
    for check in checks:
        first.setdefault(check.row or check.code, check)
    return list(first.values())
