"""Django application configuration of `workers`, which has no models: it brings `manage.py run_scheduler`."""

from django.apps import AppConfig


class WorkersConfig(AppConfig):
    """Registers the app with Django."""

    name = "workers"
