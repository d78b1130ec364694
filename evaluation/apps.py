"""Django application configuration of `evaluation`."""

from typing import Any

from django.apps import AppConfig
from django.db import DEFAULT_DB_ALIAS, connections
from django.db.models.signals import post_migrate


class EvaluationConfig(AppConfig):
    """Registers the app with Django, and sees to it that every database has the default policy."""

    name = "evaluation"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Connects the making of the default policy to the end of `migrate`."""
        post_migrate.connect(_make_default_policy, sender=self)


def _make_default_policy(*, using: str, **_: Any) -> None:
    # Models can be imported only once the apps are ready.
    from evaluation.models import Policy
    from evaluation.services.policies import ensure_default_policy

    # A migration back to nothing ends with this signal too.
    if using == DEFAULT_DB_ALIAS and Policy._meta.db_table in connections[using].introspection.table_names():
        ensure_default_policy()
