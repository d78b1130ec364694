"""Training runs over REST."""

from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from registry.api.base import AssayView, page_schema
from registry.api.idempotency import idempotent
from registry.choices import TokenScope
from training.api.serializers import CurvesSerializer, TrainingRunCreateSerializer, TrainingRunSerializer
from training.selectors.runs import get_curves, get_training_run, list_training_runs
from training.services.runs import TrainingRequest, cancel_training_run, create_training_run

MAY_LOOK = (TokenScope.READ, TokenScope.SUBMIT)


class TrainingRunListView(AssayView):
    """All training runs."""

    scopes = {"GET": MAY_LOOK, "POST": (TokenScope.SUBMIT,)}

    @extend_schema(
        operation_id="training_runs_list", tags=["training"], responses=page_schema(TrainingRunSerializer)
    )
    def get(self, request: Request) -> Response:
        """Lists training runs, newest first."""
        return self.page_of(list_training_runs(), TrainingRunSerializer)

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
