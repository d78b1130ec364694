"""`assay train preflight`: a training tried out before its first step, on files alone, without a server.

The work is done by the training engine's own program, which the command becomes.
"""

import os
from collections.abc import Callable

import typer

from client.cli.local_data import PROGRAM_NAME_VARIABLE
from client.cli.programs import become_program

PREFLIGHT_MODULE = "training.engine.preflight"
_NEEDED_PACKAGES = ("training", "torch", "transformers", "peft")
_NOT_INSTALLED = (
    "training-tools-not-installed",
    "The training tools are not installed here ({missing} missing). "
    "Install them with: pip install 'assay-gate[worker]'.",
)


def add_preflight_command(group: typer.Typer, *, become: Callable[..., None] = become_program) -> None:
    """Add the command to `assay train`; options, --help included, go to the program behind it."""
    pass_on = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}

    @group.command("preflight", context_settings=pass_on)
    def preflight(context: typer.Context) -> None:
        """Try out a training on this machine: decoded batches, data checks, ten examples learnt by heart."""
        os.environ[PROGRAM_NAME_VARIABLE] = "assay train preflight"
        become(PREFLIGHT_MODULE, context.args, needed_packages=_NEEDED_PACKAGES, not_installed=_NOT_INSTALLED)
