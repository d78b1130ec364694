"""Errors of services as messages of the admin."""

from django.contrib import messages
from django.http import HttpRequest

from registry.errors import AssayError


def show_error(request: HttpRequest, error: AssayError) -> None:
    """Tells an error with every fault that it names."""
    messages.error(request, error.detail)
    for fault in error.faults:
        if fault.message not in error.detail:
            text = f"{fault.where}: {fault.message}" if fault.where else fault.message
            messages.warning(request, f"{text} {fault.remedy}" if fault.remedy else text)
