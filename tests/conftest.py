"""What every test relies on."""

from importlib import import_module
from typing import Any

from django.apps import apps
from django.db.models.signals import post_migrate


def _restore_groups(sender: Any, **kwargs: Any) -> None:
    """A test with transactions of its own empties all tables, also those that migrations had filled."""
    if sender.name == "registry":
        import_module("registry.migrations.0002_groups").create_groups(apps, None)


post_migrate.connect(_restore_groups, dispatch_uid="tests-restore-groups")
