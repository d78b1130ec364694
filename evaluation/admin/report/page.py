"""Builds the report page of an evaluation run, its list of examples and its status for the page's own
script.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.urls import reverse

from evaluation.admin.report.examples import ExampleFilterForm, build_example_page
from evaluation.admin.report.rule_rows import BAR_WIDTH, build_rule_groups
from evaluation.admin.report.score_rows import build_parity_facts, build_score_tables
from evaluation.choices import RunState, RunSubject
from evaluation.models import Decision, EvaluationRun
from evaluation.selectors.decisions import find_current_decision, find_override
from evaluation.selectors.runs import CHECKED_KEY, get_run, state_of_submission
from registry.admin.base import actor_of
from registry.choices import (
    ACTIVE_JOB_STATES,
    FINAL_VERSION_STATES,
    VERDICT_STATES,
    TokenScope,
    VersionState,
)
from registry.models import Channel, Job
from registry.selectors.channels import find_rollback_target, list_channels
from registry.services.actors import Actor

TEMPLATE: Final = "admin/evaluation/evaluationrun/report.html"
EXAMPLES_TEMPLATE: Final = "admin/evaluation/evaluationrun/_examples.html"
MAX_SHOWN_PAIRS: Final = 50
_STEPS: Final = (
    VersionState.SUBMITTED,
    VersionState.CHECKED,
    VersionState.MERGED,
    VersionState.EVALUATED,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressStep:
    """One step on the way to a verdict; `status` is "done", "now" or "ahead"."""

    label: str
    status: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelRow:
    """One channel as the page offers it.

    Attributes:
        channel: The channel.
        serves: What it serves now, or "".
        is_served: Whether that is this run's version.
        rollback_target: What a rollback would bring back, or "".
    """

    channel: Channel
    serves: str
    is_served: bool
    rollback_target: str


class ReportPages:
    """The views of the report that only show something."""

    def __init__(self, model_admin: "ModelAdmin[EvaluationRun]") -> None:
        """Takes the admin whose rights and look the pages have."""
        self.model_admin = model_admin

    def show_report(self, request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
        """The whole page."""
        run = self._visible_run(request, run_id)
        context = {
            **self.model_admin.admin_site.each_context(request),
            **_page_context(run, actor_of(request)),
            **_examples_context(request, run),
            "title": f"Evaluation of {run.version or run.base_model}",
            "opts": self.model_admin.opts,
            "is_fullwidth": "1",
        }
        return render(request, TEMPLATE, context)

    def show_examples(self, request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
        """The list of examples alone, to be put into a page that is open."""
        run = self._visible_run(request, run_id)
        return render(request, EXAMPLES_TEMPLATE, {"run": run, **_examples_context(request, run)})

    def show_status(self, request: HttpRequest, run_id: uuid.UUID) -> JsonResponse:
        """How far the run is, for the page's script."""
        run = self._visible_run(request, run_id)
        job = awaited_job(run)
        shown = None
        if job is not None:
            shown = {
                "kind": job.kind,
                "state": job.state,
                "fraction": job.fraction,
                "message": job.message,
            }
        return JsonResponse({"state": _state_of(run), "is_final": job is None, "job": shown})

    def _visible_run(self, request: HttpRequest, run_id: uuid.UUID) -> EvaluationRun:
        if not self.model_admin.has_view_permission(request):
            raise PermissionDenied
        run = get_run(run_id)
        if run is None:
            raise Http404
        return run


def awaited_job(run: EvaluationRun) -> Job | None:
    """The unfinished job that a run waits for, be it the baseline's; None when it waits for none."""
    if run.state not in (RunState.PENDING, RunState.RUNNING):
        return None
    for job in (run.job, run.baseline.job if run.baseline else None):
        if job is not None and job.state in ACTIVE_JOB_STATES:
            return job
    return None


def decision_of(run: EvaluationRun) -> Decision | None:
    """The run's decision; None before there is one."""
    return run.decision if hasattr(run, "decision") else None


def _page_context(run: EvaluationRun, actor: Actor) -> dict[str, Any]:
    decision, baseline, job = decision_of(run), run.baseline, awaited_job(run)
    version = run.version
    is_candidate = run.subject == RunSubject.CANDIDATE
    adapter_name = version.adapter.name if version else ""
    may_promote = actor.has_scope(TokenScope.PROMOTE) and actor.may_use_adapter(adapter_name)
    may_submit = actor.has_scope(TokenScope.SUBMIT) and actor.may_use_adapter(adapter_name)
    state = _state_of(run)
    metrics: Mapping[str, Any] = run.metrics or {}
    leakage = metrics.get("leakage") or {}
    return {
        "run": run,
        "version": version,
        "is_candidate": is_candidate,
        "state": state,
        "steps": _steps(run, state) if is_candidate else (),
        "job": job,
        "job_percent": round(100 * job.fraction) if job else 0,
        "job_url": _admin_url("registry_job_change", run.job_id),
        "decision": decision,
        "rule_groups": build_rule_groups(decision.rules) if decision else (),
        "bar_width": BAR_WIDTH,
        "score_tables": build_score_tables(run.metrics, baseline.metrics if baseline else None),
        "has_baseline": baseline is not None,
        "parity_facts": build_parity_facts(run.metrics),
        "leakage": leakage,
        "leakage_pairs": (leakage.get("pairs") or ())[:MAX_SHOWN_PAIRS],
        "constant_answers": metrics.get("constant_answer_warnings") or (),
        "findings": version.findings if version else (),
        "failure": run.failure,
        "channels": _channel_rows(run) if decision else (),
        "is_current_decision": decision is not None and _is_current(run, decision),
        "override": find_override(decision) if decision else None,
        "user_may_promote": may_promote,
        "user_may_cancel": may_submit and is_candidate and run.state in (RunState.PENDING, RunState.RUNNING),
        "user_may_retry": may_submit
        and is_candidate
        and state in (VersionState.FAILED, VersionState.CANCELLED),
        "actor_user": actor.user,
    }


def _examples_context(request: HttpRequest, run: EvaluationRun) -> dict[str, Any]:
    form = ExampleFilterForm(request.GET, run)
    decision = decision_of(run)
    rules = decision.rules if decision else ()
    return {
        "filter_form": form,
        "examples": build_example_page(run, form, request.GET.get("page", "1"), rules),
    }


def _state_of(run: EvaluationRun) -> str:
    if run.subject == RunSubject.CANDIDATE:
        return state_of_submission(run)
    return {RunState.SCORED: VersionState.EVALUATED.value}.get(RunState(run.state), run.state)


def _steps(run: EvaluationRun, state: str) -> tuple[ProgressStep, ...]:
    """The way to the verdict. A run that failed or was cancelled shows no step as going on."""
    is_decided = state in VERDICT_STATES
    is_stopped = not is_decided and state in FINAL_VERSION_STATES
    num_done = len(_STEPS) + 1 if is_decided else _num_steps_done(run, state)
    steps = []
    for number, label in enumerate((*(step.label for step in _STEPS), "Decided")):
        is_now = number == num_done and not is_stopped
        status = "done" if number < num_done else "now" if is_now else "ahead"
        steps.append(ProgressStep(label=str(label), status=status))
    return tuple(steps)


def _num_steps_done(run: EvaluationRun, state: str) -> int:
    if state == VersionState.EVALUATED:
        return 4
    version = run.version
    if version is None:
        return 0
    if version.merged_artifact_id is not None:
        return 3
    return 2 if version.summary.get(CHECKED_KEY) else 1


def _channel_rows(run: EvaluationRun) -> tuple[ChannelRow, ...]:
    return tuple(_channel_row(run, channel) for channel in list_channels().order_by("name"))


def _channel_row(run: EvaluationRun, channel: Channel) -> ChannelRow:
    current, target = channel.current, find_rollback_target(channel)
    return ChannelRow(
        channel=channel,
        serves="" if current is None else str(current.version),
        is_served=current is not None and current.version_id == run.version_id,
        rollback_target="" if target is None else str(target.version),
    )


def _is_current(run: EvaluationRun, decision: Decision) -> bool:
    """Whether a promotion would rest on this decision, and not on one of a newer run."""
    if run.version is None:
        return False
    return find_current_decision(run.version, run.form) == decision


def _admin_url(name: str, key: object) -> str:
    return "" if key is None else reverse(f"admin:{name}", args=(key,))
