"""Addresses of the web process."""

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

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
