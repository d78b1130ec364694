"""Addresses of the web process."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from config.verdict_source import register_verdict_source

register_verdict_source()

# Errors outside the API's views: problem documents below /api/, Django's pages elsewhere.
handler400 = "registry.api.problems.bad_request_page"
handler404 = "registry.api.problems.not_found_page"
handler500 = "registry.api.problems.server_error_page"

urlpatterns: list[URLPattern | URLResolver] = [
    path("health/", include("config.health.urls")),
    path(
        "api/v1/",
        include(
            [
                path("schema", SpectacularAPIView.as_view(permission_classes=[]), name="schema"),
                path(
                    "docs",
                    SpectacularSwaggerView.as_view(url_name="schema", permission_classes=[]),
                    name="docs",
                ),
                path("", include("registry.api.urls")),
                path("", include("evaluation.api.urls")),
                path("", include("training.api.urls")),
            ]
        ),
    ),
    path("admin/", admin.site.urls),
]
