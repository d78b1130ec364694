"""What can be done from the report page: POST only, by the services, which check the rights themselves."""

import uuid
from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import redirect

from evaluation.admin.report.page import decision_of
from evaluation.errors import EvaluationConflict
from evaluation.models import Decision, EvaluationRun
from evaluation.selectors.decisions import find_override, get_decision
from evaluation.selectors.runs import get_run
from evaluation.services.decisions import recompute_decision
from evaluation.services.overrides import confirm_override, request_override
from evaluation.services.promotion import promote
from evaluation.services.submissions import cancel_submission, retry_submission
from registry.admin.base import actor_of
from registry.api.strict import MAX_REASON_CHARS
from registry.errors import AssayError
from registry.services.channels import rollback_channel


class ChannelForm(forms.Form):
    """A change of a channel; `revision` is the channel as the person saw it."""

    channel = forms.CharField(max_length=96)
    revision = forms.IntegerField(min_value=0)
    reason = forms.CharField(max_length=MAX_REASON_CHARS, required=False)
    override = forms.BooleanField(required=False)


class ReasonForm(forms.Form):
    """A reason."""

    reason = forms.CharField(max_length=MAX_REASON_CHARS, required=False)


class ReportActions:
    """The views of the report that change something. Each ends on the report page with a message."""

    def __init__(self, model_admin: "ModelAdmin[EvaluationRun]") -> None:
        """Takes the admin whose rights the views have."""
        self.model_admin = model_admin

    def promote(self, request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
        """Lets a channel serve the run's version."""

        def do(run: EvaluationRun) -> str:
            if run.version is None:
                raise EvaluationConflict("run-not-scored", state=run.state)
            values = _cleaned(ChannelForm(request.POST))
            channel = promote(
                channel_name=values["channel"],
                adapter_name=run.version.adapter.name,
                version_number=run.version.number,
                expected_revision=values["revision"],
                reason=values["reason"],
                override=values["override"],
                actor=actor_of(request),
            )
            return f"Channel {channel.name} serves {run.version} now."

        return self._do(request, run_id, do)

    def roll_back(self, request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
        """Lets a channel serve again what it served before."""

        def do(run: EvaluationRun) -> str:
            values = _cleaned(ChannelForm(request.POST))
            channel = rollback_channel(
                channel_name=values["channel"],
                expected_revision=values["revision"],
                reason=values["reason"],
                actor=actor_of(request),
            )
            served = "nothing" if channel.current is None else str(channel.current.version)
            return f"Channel {channel.name} serves {served} again."

        return self._do(request, run_id, do)

    def request_override(self, request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
        """Asks that the decision be set aside."""

        def do(run: EvaluationRun) -> str:
            reason = _cleaned(ReasonForm(request.POST))["reason"]
            request_override(decision=_decision(run), reason=reason, actor=actor_of(request))
            return "The override waits for a second person to confirm it."

        return self._do(request, run_id, do)

    def confirm_override(self, request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
        """Confirms, as the second person, that the decision may be set aside."""

        def do(run: EvaluationRun) -> str:
            override = find_override(_decision(run))
            if override is None:
                raise EvaluationConflict("override-missing", reference=str(run.version))
            confirm_override(override=override, actor=actor_of(request))
            return "The override is confirmed; the version can be promoted with it."

        return self._do(request, run_id, do)

    def cancel(self, request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
        """Ends the submission."""

        def do(run: EvaluationRun) -> str:
            cancel_submission(run=run, actor=actor_of(request), reason="Cancelled on the report page.")
            return "The submission was cancelled."

        return self._do(request, run_id, do)

    def retry(self, request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
        """Begins the submission again."""

        def do(run: EvaluationRun) -> str:
            retry_submission(run=run, actor=actor_of(request))
            return "The submission was begun again; finished steps are not repeated."

        return self._do(request, run_id, do)

    def recompute(self, request: HttpRequest, run_id: uuid.UUID) -> HttpResponse:
        """Applies the rules again to what is stored, and says whether the decision is the same."""

        def do(run: EvaluationRun) -> str:
            recomputation = recompute_decision(decision=_decision(run), actor=actor_of(request))
            if recomputation.is_equal:
                return "The rules give the same decision again from what is stored."
            listed = "; ".join(recomputation.differences)
            raise EvaluationConflict("decision-differs", f"The decision came out differently: {listed}")

        return self._do(request, run_id, do)

    def _do(
        self, request: HttpRequest, run_id: uuid.UUID, do: Callable[[EvaluationRun], str]
    ) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not self.model_admin.has_view_permission(request):
            raise PermissionDenied
        run = get_run(run_id)
        if run is None:
            raise Http404
        try:
            messages.success(request, do(run))
        except AssayError as error:
            messages.error(request, error.detail)
            for fault in error.faults:
                if fault.message not in error.detail:
                    messages.warning(
                        request, f"{fault.where}: {fault.message}" if fault.where else fault.message
                    )
        return redirect("admin:evaluation_evaluationrun_report", run_id=run.pk)


def _cleaned(form: forms.Form) -> dict[str, Any]:
    if not form.is_valid():
        listed = "; ".join(f"{name}: {' '.join(map(str, errors))}" for name, errors in form.errors.items())
        raise AssayError("form-invalid", f"The form has faults: {listed}", status=422)
    return dict(form.cleaned_data)


def _decision(run: EvaluationRun) -> Decision:
    decision = decision_of(run)
    if decision is None:
        raise EvaluationConflict("run-not-scored", state=run.state)
    return get_decision(decision.pk)
