"""The groups whose members may review and promote (`registry.services.actors.GROUP_SCOPES`)."""

from django.apps.registry import Apps
from django.db import migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

NAMES = ("reviewers", "promoters")


def create_groups(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Makes the groups that are missing."""
    group = apps.get_model("auth", "Group")
    for name in NAMES:
        group.objects.get_or_create(name=name)


class Migration(migrations.Migration):
    """Makes the groups; they stay when the migration is taken back, since people may be in them."""

    dependencies = [("registry", "0001_initial"), ("auth", "0012_alter_user_first_name_max_length")]
    operations = [migrations.RunPython(create_groups, migrations.RunPython.noop)]
