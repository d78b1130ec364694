"""Reads suites."""

from django.db.models import QuerySet

from evaluation.errors import EvaluationNotFound
from evaluation.models import Suite, SuiteVersion
from registry.services.names import near_misses, parse_reference


def list_suite_versions() -> QuerySet[SuiteVersion]:
    """All suite versions, newest first, with what an answer shows of them."""
    return SuiteVersion.objects.select_related("suite").prefetch_related("datasets__dataset_version__dataset")


def get_suite_version(*, reference: str, where: str = "/suite") -> SuiteVersion:
    """The suite version that "name@number" names; "name" alone means the newest.

    Args:
        reference: What the client wrote.
        where: The place of the reference in the request, for the fault.

    Raises:
        ValidationFailed: it has not the form of a reference.
        EvaluationNotFound: there is no such suite or version.
    """
    wanted = parse_reference(reference, where=where)
    versions = list_suite_versions().filter(suite__name=wanted.name).order_by("-number")
    latest = versions.first()
    if latest is None:
        near = near_misses(wanted.name, Suite.objects.values_list("name", flat=True))
        raise EvaluationNotFound("suite-not-found", name=wanted.name, near=near)
    if wanted.number is None:
        return latest
    version = versions.filter(number=wanted.number).first()
    if version is None:
        raise EvaluationNotFound("suite-version-not-found", reference=str(wanted), latest=str(latest))
    return version
