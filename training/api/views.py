"""Training runs over REST."""

from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.base import AssayView, page_schema, query_choice
from registry.api.idempotency import idempotent
from registry.choices import TokenScope
from training.api.serializers import (
    ComparisonSerializer,
    CurvesSerializer,
    DocumentsSerializer,
    TrainingRunCreateSerializer,
    TrainingRunSerializer,
    VariationCreateSerializer,
)
from training.choices import TrainingPurpose, TrainingRunState
from training.selectors.comparison import compare_relatives
from training.selectors.runs import get_curves, get_documents, get_training_run, list_training_runs
from training.services.runs import TrainingRequest, cancel_training_run, create_training_run
from training.services.variations import VariationRequest, create_variation

MAY_LOOK = (TokenScope.READ, TokenScope.SUBMIT)


class TrainingRunListView(AssayView):
    """All training runs."""

    scopes = {"GET": MAY_LOOK, "POST": (TokenScope.SUBMIT,)}

    @extend_schema(
        operation_id="training_runs_list",
        tags=["training"],
        parameters=[
            OpenApiParameter("state", str, enum=TrainingRunState.values),
            OpenApiParameter("purpose", str, enum=TrainingPurpose.values),
        ],
        responses=page_schema(TrainingRunSerializer),
    )
    def get(self, request: Request) -> Response:
        """Lists training runs, newest first."""
        filters = {
            "state": query_choice(request, "state", TrainingRunState.values),
            "purpose": query_choice(request, "purpose", TrainingPurpose.values),
        }
        runs = list_training_runs().filter(**{name: value for name, value in filters.items() if value})
        return self.page_of(runs, TrainingRunSerializer)

    @extend_schema(
        operation_id="training_runs_create",
        tags=["training"],
        request=TrainingRunCreateSerializer,
        responses={201: TrainingRunSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Begins a training run; equal data, base and configuration reuse the earlier result."""
        body = self.validated(TrainingRunCreateSerializer)
        run = create_training_run(
            request=TrainingRequest(
                name=body["name"],
                base_model_name=body["base_model"],
                datasets=body["datasets"],
                holdout=body.get("holdout"),
                config=body.get("config", {}),
                purpose=body.get("purpose", TrainingPurpose.TRAINING),
                note=body.get("note", ""),
                parent_id=body.get("parent"),
                allow_lint_errors=body.get("allow_lint_errors", False),
            ),
            actor=self.actor,
        )
        answer = TrainingRunSerializer(run, context={"request": request})
        return Response(answer.data, status=status.HTTP_201_CREATED)


class TrainingRunView(AssayView):
    """One training run."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(operation_id="training_runs_retrieve", tags=["training"], responses=TrainingRunSerializer)
    def get(self, request: Request, run_id: UUID) -> Response:
        """Shows a training run."""
        return Response(TrainingRunSerializer(get_training_run(run_id), context={"request": request}).data)


class TrainingRunMetricsView(AssayView):
    """The curves of one training run."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(operation_id="training_runs_metrics", tags=["training"], responses=CurvesSerializer)
    def get(self, request: Request, run_id: UUID) -> Response:
        """Gives loss, held-out loss, gradient norm, learning rate and whatever else was measured, by step."""
        curves = get_curves(get_training_run(run_id))
        return Response(
            {
                "results": {
                    name: [{"step": step, "value": value} for step, value in points]
                    for name, points in curves.items()
                }
            }
        )


class TrainingRunDocumentsView(AssayView):
    """What one training run reported besides its curves."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(operation_id="training_runs_documents", tags=["training"], responses=DocumentsSerializer)
    def get(self, request: Request, run_id: UUID) -> Response:
        """Gives the run's documents by name: `preflight`, `not_finite` and `mini`, where it has them."""
        return Response({"results": get_documents(get_training_run(run_id))})


class TrainingRunComparisonView(AssayView):
    """A run beside the one that it varies and its own variations."""

    scopes = {"GET": MAY_LOOK}

    @extend_schema(operation_id="training_runs_comparison", tags=["training"], responses=ComparisonSerializer)
    def get(self, request: Request, run_id: UUID) -> Response:
        """Compares configuration, losses, speed, findings and verdicts."""
        return Response(ComparisonSerializer(compare_relatives(get_training_run(run_id))).data)


class TrainingRunVariationListView(AssayView):
    """Variations of one training run."""

    scopes = {"POST": (TokenScope.SUBMIT,)}

    @extend_schema(
        operation_id="training_runs_vary",
        tags=["training"],
        request=VariationCreateSerializer,
        responses={201: TrainingRunSerializer},
    )
    @idempotent
    def post(self, request: Request, run_id: UUID) -> Response:
        """Begins a variation against forgetting, whose parent is this run."""
        body = self.validated(VariationCreateSerializer)
        run = create_variation(
            run=get_training_run(run_id), request=VariationRequest(**body), actor=self.actor
        )
        answer = TrainingRunSerializer(run, context={"request": request})
        return Response(answer.data, status=status.HTTP_201_CREATED)


class TrainingRunCancelView(AssayView):
    """Cancelling one training run."""

    scopes = {"POST": (TokenScope.SUBMIT,)}

    @extend_schema(
        operation_id="training_runs_cancel", tags=["training"], request=None, responses=TrainingRunSerializer
    )
    @idempotent
    def post(self, request: Request, run_id: UUID) -> Response:
        """Ends a training run."""
        run = cancel_training_run(run=get_training_run(run_id), actor=self.actor)
        return Response(TrainingRunSerializer(run, context={"request": request}).data)
