"""Django application configuration of `training`."""

from django.apps import AppConfig


class TrainingConfig(AppConfig):
    """Registers the app with Django."""

    name = "training"
    default_auto_field = "django.db.models.BigAutoField"
