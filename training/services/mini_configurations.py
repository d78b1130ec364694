"""Changes the settings of the minimal reproducible experiment (MISSION D6), which are kept by themselves."""

from collections.abc import Mapping
from typing import Any

from django.db import IntegrityError, transaction

from registry.choices import TokenScope
from registry.services.actors import Actor
from registry.services.audit import record_audit
from registry.services.jobs.records import storable_json
from training.engine.config import TrainingConfig
from training.engine.errors import ConfigInvalid
from training.errors import TrainingConflict, TrainingInvalid
from training.models import MiniConfiguration
from training.selectors.mini_configurations import get_active_mini_configuration, get_mini_overlay
from training.services.dataset_lookups import config_faults


def store_mini_configuration(*, overlay: Mapping[str, Any], actor: Actor) -> MiniConfiguration:
    """Makes settings the ones that are laid over every configuration for the small experiment.

    Args:
        overlay: Sections and settings as in a training configuration; what is not in it stays as each
            configuration has it.
        actor: Needs the scope `submit`.

    Returns:
        The active row: the one that was active already when it says the same.

    Raises:
        ScopeError: the actor may not submit.
        TrainingInvalid: with every fault (code `mini-configuration-invalid`).
        TrainingConflict: somebody else changed it at the same time.
    """
    actor.require(TokenScope.SUBMIT)
    try:
        TrainingConfig.from_json(overlay)
    except ConfigInvalid as error:
        raise TrainingInvalid(
            "mini-configuration-invalid", faults=list(config_faults(error, below=""))
        ) from error
    clean = storable_json(overlay)
    active, before = get_active_mini_configuration(), dict(get_mini_overlay())
    if active is not None and active.overlay == clean:
        return active
    try:
        with transaction.atomic():
            if active is not None:
                MiniConfiguration.objects.filter(pk=active.pk).update(is_active=False)
            row = MiniConfiguration.objects.create(overlay=clean, created_by=actor.user)
            record_audit(
                actor=actor,
                action="mini_configuration.change",
                target=row,
                before={"overlay": before},
                after={"overlay": clean},
            )
    except IntegrityError as error:
        # The row that we saw active was replaced meanwhile; two rows cannot be active.
        raise TrainingConflict("mini-configuration-changed") from error
    return row
