"""`assay train estimate`: the memory of a training before it is begun, on files alone, without a server.

The work is done by the training engine's own program, which the command becomes.
"""

import os
from collections.abc import Callable

import typer

from client.cli.local_data import PROGRAM_NAME_VARIABLE
from client.cli.programs import become_program

ESTIMATE_MODULE = "training.engine.memory"
_NEEDED_PACKAGES = ("training",)
_NOT_INSTALLED = (
    "training-tools-not-installed",
    "The training tools are not installed here ({missing} missing). "
    "Install them with: pip install 'assay-gate'.",
)


def add_estimate_command(group: typer.Typer, *, become: Callable[..., None] = become_program) -> None:
    """Add the command to `assay train`; options, --help included, go to the program behind it."""
    pass_on = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}

    @group.command("estimate", context_settings=pass_on)
    def estimate(context: typer.Context) -> None:
        """Tell how much memory a training needs, which cards it fits, and what to change first."""
        os.environ[PROGRAM_NAME_VARIABLE] = "assay train estimate"
        become(ESTIMATE_MODULE, context.args, needed_packages=_NEEDED_PACKAGES, not_installed=_NOT_INSTALLED)
