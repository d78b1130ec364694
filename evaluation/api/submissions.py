"""Submissions over REST: what CI does."""

from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.api.serializers import ExampleSerializer, SubmissionCreateSerializer, SubmissionSerializer
from evaluation.api.suites import created_status
from evaluation.models import EvaluationRun
from evaluation.selectors.policies import DEFAULT_POLICY_NAME
from evaluation.selectors.runs import get_submission, list_examples, list_submissions
from evaluation.services.submissions import SubmissionRequest, cancel_submission, retry_submission, submit
from registry.api.base import AssayView, page_schema, query_choice
from registry.api.idempotency import idempotent
from registry.api.pagination import PositionCursorPagination
from registry.choices import EVALUATION_ROLES, ServingForm, TokenScope, VersionState

MAY_LOOK = (TokenScope.READ, TokenScope.SUBMIT)
"""Whoever may submit may also see what became of it."""


class SubmissionView(AssayView):
    """Base of the views of one submission."""

    scopes = {"GET": MAY_LOOK, "POST": (TokenScope.SUBMIT,)}

    def visible_submission(self, run_id: UUID) -> EvaluationRun:
        """The submission, if the caller's limit to named adapters allows it."""
        run = get_submission(run_id)
        if run.version is not None:
            self.actor.require_any(MAY_LOOK, run.version.adapter.name)
        return run

    def answer(self, run: EvaluationRun, status: int = 200) -> Response:
        """The submission as JSON."""
        return Response(SubmissionSerializer(run, context={"request": self.request}).data, status=status)


class SubmissionListView(SubmissionView):
    """All submissions."""

    @extend_schema(
        operation_id="submissions_list",
        tags=["submissions"],
        parameters=[
            OpenApiParameter("adapter", str, description="Name of the adapter."),
            OpenApiParameter("state", str, enum=VersionState.values),
        ],
        responses=page_schema(SubmissionSerializer),
    )
    def get(self, request: Request) -> Response:
        """Lists submissions, newest first."""
        runs = list_submissions(
            state=query_choice(request, "state", VersionState.values),
            adapter_name=request.query_params.get("adapter"),
            adapter_names=self.actor.adapter_names,
        )
        return self.page_of(runs, SubmissionSerializer)

    @extend_schema(
        operation_id="submissions_create",
        tags=["submissions"],
        request=SubmissionCreateSerializer,
        responses={200: SubmissionSerializer, 201: SubmissionSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Submits an uploaded adapter; the same bytes, suite and policy again are the submission that is
        there (200).
        """
        body = self.validated(SubmissionCreateSerializer)
        submitted = submit(
            request=SubmissionRequest(
                adapter_name=body["adapter"],
                artifact_digest=body["artifact"],
                base_model_name=body["base_model"],
                suite=body["suite"],
                policy=body.get("policy", DEFAULT_POLICY_NAME),
                training_datasets=body.get("training_dataset", ()),
                notes=body.get("notes", ""),
            ),
            actor=self.actor,
        )
        return self.answer(submitted.run, created_status(submitted.is_new))


class SubmissionDetailView(SubmissionView):
    """One submission."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(operation_id="submissions_retrieve", tags=["submissions"], responses=SubmissionSerializer)
    def get(self, request: Request, run_id: UUID) -> Response:
        """Shows a submission with its decision, as soon as there is one."""
        return self.answer(self.visible_submission(run_id))


class SubmissionExamplesView(SubmissionView):
    """The examples of one submission."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(
        operation_id="submissions_examples",
        tags=["submissions"],
        parameters=[
            OpenApiParameter("role", str, enum=EVALUATION_ROLES),
            OpenApiParameter("form", str, enum=ServingForm.values),
            OpenApiParameter("dimension", str, description="Of regression examples."),
            OpenApiParameter("passed", str, enum=["true", "false"]),
        ],
        responses={200: dict},
    )
    def get(self, request: Request, run_id: UUID) -> Response:
        """Lists the rows of the report in their order."""
        examples = list_examples(self.visible_submission(run_id))
        if (role := query_choice(request, "role", list(EVALUATION_ROLES))) is not None:
            examples = examples.filter(role=role)
        if (form := query_choice(request, "form", ServingForm.values)) is not None:
            examples = examples.filter(form=form)
        if (dimension := request.query_params.get("dimension")) is not None:
            examples = examples.filter(dimension=dimension)
        if (passed := query_choice(request, "passed", ["true", "false"])) is not None:
            examples = examples.filter(is_passed=passed == "true")
        return self.page_of(examples, ExampleSerializer, pagination_class=PositionCursorPagination)


class SubmissionCancelView(SubmissionView):
    """Cancelling one submission."""

    scopes = {"POST": (TokenScope.SUBMIT,)}

    @extend_schema(
        operation_id="submissions_cancel", tags=["submissions"], request=None, responses=SubmissionSerializer
    )
    @idempotent
    def post(self, request: Request, run_id: UUID) -> Response:
        """Ends a submission that has no results yet."""
        run = self.visible_submission(run_id)
        return self.answer(cancel_submission(run=run, actor=self.actor))


class SubmissionRetryView(SubmissionView):
    """Trying one submission again."""

    scopes = {"POST": (TokenScope.SUBMIT,)}

    @extend_schema(
        operation_id="submissions_retry", tags=["submissions"], request=None, responses=SubmissionSerializer
    )
    @idempotent
    def post(self, request: Request, run_id: UUID) -> Response:
        """Begins a failed or cancelled submission again; finished steps are not repeated."""
        run = self.visible_submission(run_id)
        return self.answer(retry_submission(run=run, actor=self.actor))
