"""Django application configuration of `evaluation`."""

from django.apps import AppConfig


class EvaluationConfig(AppConfig):
    """Registers the app with Django."""

    name = "evaluation"
    default_auto_field = "django.db.models.BigAutoField"
