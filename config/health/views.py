"""What load balancers, `assay up` and people ask: is this process alive, is the whole system ready for
work.
"""

from http import HTTPStatus

from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from config.health.checks import run_checks


@never_cache
@require_safe
def live(request: HttpRequest) -> JsonResponse:
    """200 whenever the web process answers; it asks nobody else."""
    return JsonResponse({"status": "live"})


@never_cache
@require_safe
def ready(request: HttpRequest) -> JsonResponse:
    """200 with status "ready" when every check passes, else 503 with status "not-ready" and the reasons."""
    checks = run_checks()
    is_ready = all(check.is_ok for check in checks.values())
    return JsonResponse(
        {
            "status": "ready" if is_ready else "not-ready",
            "checks": {name: {"ok": check.is_ok, "detail": check.detail} for name, check in checks.items()},
        },
        status=HTTPStatus.OK if is_ready else HTTPStatus.SERVICE_UNAVAILABLE,
    )
