"""Django application configuration of `registry`."""

from django.apps import AppConfig


class RegistryConfig(AppConfig):
    """Registers the app with Django."""

    name = "registry"
    default_auto_field = "django.db.models.BigAutoField"
