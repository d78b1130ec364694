"""Names the server's version in every answer, so that `assay doctor` can compare it with the client's."""

import functools
from importlib.metadata import PackageNotFoundError, version

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.utils.deprecation import MiddlewareMixin

HEADER = "Assay-Version"
DISTRIBUTION = "assay-gate"


@functools.cache
def server_version() -> str | None:
    """The installed version; None where the package runs without being installed."""
    try:
        return version(DISTRIBUTION)
    except PackageNotFoundError:
        return None


class VersionHeaderMiddleware(MiddlewareMixin):
    """Sets `Assay-Version` where the version is known."""

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Adds the header to the answer."""
        if (known := server_version()) is not None:
            response[HEADER] = known
        return response
