"""Reads policies."""

from django.db.models import QuerySet

from evaluation.errors import EvaluationNotFound
from evaluation.models import Policy
from registry.services.names import near_misses, parse_reference

DEFAULT_POLICY_NAME = "default"


def list_policies() -> QuerySet[Policy]:
    """All policy versions, newest first."""
    return Policy.objects.order_by("-created_at", "-id")


def get_policy(*, reference: str = DEFAULT_POLICY_NAME, where: str = "/policy") -> Policy:
    """The policy version that "name@number" names; "name" alone means the newest.

    Args:
        reference: What the client wrote; the default policy when left out.
        where: The place of the reference in the request, for the fault.

    Raises:
        ValidationFailed: it has not the form of a reference.
        EvaluationNotFound: there is no such policy or version.
    """
    wanted = parse_reference(reference, where=where)
    versions = Policy.objects.filter(name=wanted.name).order_by("-number")
    latest = versions.first()
    if latest is None:
        near = near_misses(wanted.name, Policy.objects.values_list("name", flat=True).distinct())
        raise EvaluationNotFound("policy-not-found", name=wanted.name, near=near)
    if wanted.number is None:
        return latest
    policy = versions.filter(number=wanted.number).first()
    if policy is None:
        raise EvaluationNotFound("policy-version-not-found", reference=str(wanted), latest=str(latest))
    return policy
