"""Addresses of the health checks: outside the API, without a token."""

from django.urls import path

from config.health.views import live, ready

urlpatterns = [
    path("live", live, name="health-live"),
    path("ready", ready, name="health-ready"),
]
