"""Suites, policies and baselines over REST."""

from uuid import UUID

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from evaluation.api.serializers import (
    BaselineCreateSerializer,
    PolicyCreateSerializer,
    PolicySerializer,
    RunSerializer,
    SuiteCreateSerializer,
    SuiteSerializer,
)
from evaluation.selectors.policies import get_policy, list_policies
from evaluation.selectors.runs import get_baseline, list_baselines
from evaluation.selectors.suites import get_suite_version, list_suite_versions
from evaluation.services.baseline_starts import start_baseline
from evaluation.services.policies import register_policy
from evaluation.services.suites import register_suite
from registry.api.base import AssayView, page_schema, query_integer
from registry.api.idempotency import idempotent
from registry.choices import TokenScope

NUMBER_PARAMETER = OpenApiParameter("number", int, description="The version; the newest when left out.")


def created_status(is_new: bool) -> int:
    """201 for what was made just now, 200 for what was there already."""
    return status.HTTP_201_CREATED if is_new else status.HTTP_200_OK


def numbered_reference(request: Request, name: str) -> str:
    """`name@number` when the query names a number, else `name`."""
    number = query_integer(request, "number")
    return name if number is None else f"{name}@{number}"


class SuiteListView(AssayView):
    """All suite versions."""

    scopes = {
        "GET": (TokenScope.READ,),
        "POST": (TokenScope.EVALUATE,),
    }

    @extend_schema(operation_id="suites_list", tags=["suites"], responses=page_schema(SuiteSerializer))
    def get(self, request: Request) -> Response:
        """Lists suite versions, newest first."""
        return self.page_of(list_suite_versions(), SuiteSerializer)

    @extend_schema(
        operation_id="suites_create",
        tags=["suites"],
        request=SuiteCreateSerializer,
        responses={200: SuiteSerializer, 201: SuiteSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Registers a suite version; the same content again is the version that is there (200)."""
        body = self.validated(SuiteCreateSerializer)
        registered = register_suite(
            definition=body["definition"], datasets=body["datasets"], actor=self.actor
        )
        answer = get_suite_version(reference=str(registered.version))
        return Response(SuiteSerializer(answer).data, status=created_status(registered.is_new))


class SuiteView(AssayView):
    """One suite."""

    scopes = {"GET": (TokenScope.READ,)}

    @extend_schema(
        operation_id="suites_retrieve",
        tags=["suites"],
        parameters=[NUMBER_PARAMETER],
        responses=SuiteSerializer,
    )
    def get(self, request: Request, name: str) -> Response:
        """Shows a suite version."""
        version = get_suite_version(reference=numbered_reference(request, name))
        return Response(SuiteSerializer(version).data)


class PolicyListView(AssayView):
    """All policy versions."""

    scopes = {"GET": (TokenScope.READ,), "POST": (TokenScope.ADMIN,)}

    @extend_schema(operation_id="policies_list", tags=["policies"], responses=page_schema(PolicySerializer))
    def get(self, request: Request) -> Response:
        """Lists policy versions, newest first."""
        return self.page_of(list_policies(), PolicySerializer)

    @extend_schema(
        operation_id="policies_create",
        tags=["policies"],
        request=PolicyCreateSerializer,
        responses={200: PolicySerializer, 201: PolicySerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Registers a policy version; the same rules again are the version that is there (200)."""
        body = self.validated(PolicyCreateSerializer)
        registered = register_policy(definition=body["definition"], actor=self.actor)
        return Response(PolicySerializer(registered.policy).data, status=created_status(registered.is_new))


class PolicyView(AssayView):
    """One policy."""

    scopes = {"GET": (TokenScope.READ,)}

    @extend_schema(
        operation_id="policies_retrieve",
        tags=["policies"],
        parameters=[NUMBER_PARAMETER],
        responses=PolicySerializer,
    )
    def get(self, request: Request, name: str) -> Response:
        """Shows a policy version."""
        return Response(PolicySerializer(get_policy(reference=numbered_reference(request, name))).data)


class BaselineListView(AssayView):
    """All baseline runs."""

    scopes = {
        "GET": (TokenScope.READ,),
        "POST": (TokenScope.EVALUATE,),
    }

    @extend_schema(operation_id="baselines_list", tags=["baselines"], responses=page_schema(RunSerializer))
    def get(self, request: Request) -> Response:
        """Lists baseline runs, newest first."""
        return self.page_of(list_baselines(), RunSerializer)

    @extend_schema(
        operation_id="baselines_create",
        tags=["baselines"],
        request=BaselineCreateSerializer,
        responses={200: RunSerializer, 201: RunSerializer},
    )
    @idempotent
    def post(self, request: Request) -> Response:
        """Starts the baseline of a base model on a suite, or shows the one that is there (200)."""
        body = self.validated(BaselineCreateSerializer)
        started = start_baseline(base_model_name=body["base_model"], suite=body["suite"], actor=self.actor)
        answer = RunSerializer(started.run, context={"request": request})
        return Response(answer.data, status=created_status(started.is_new))


class BaselineView(AssayView):
    """One baseline run."""

    scopes = {"GET": (TokenScope.READ,)}

    @extend_schema(operation_id="baselines_retrieve", tags=["baselines"], responses=RunSerializer)
    def get(self, request: Request, run_id: UUID) -> Response:
        """Shows a baseline run."""
        return Response(RunSerializer(get_baseline(run_id), context={"request": request}).data)
