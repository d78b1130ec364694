"""`assay dataset inspect|clean|split|mix|leakage|review|make|distil|screen`: data on files alone, without a
server.

The work is done by the training engine's own program, or by programs that run models, which these commands
become.
"""

import os
from collections.abc import Callable

import typer

from client.cli.programs import become_program

DATA_MODULE = "training.engine.data"
PROGRAM_NAME_VARIABLE = "ASSAY_PROGRAM_NAME"
_NEEDED_PACKAGES = ("training", "yaml", "pyarrow", "lingua", "phonenumbers", "stdnum", "ftfy")
_NOT_INSTALLED = (
    "data-tools-not-installed",
    "The data tools are not installed here ({missing} missing). "
    "Install them with: pip install 'assay-gate[data]'.",
)

MODEL_MODULES = {"distil": "workers.job.distil", "screen": "workers.job.screen"}
"""Commands that run models of this machine, each a program of its own."""
# vLLM brings torch along; transformers alone is enough.
_NEEDED_FOR_MODELS = (*_NEEDED_PACKAGES, "workers", "evaluation", "torch", "transformers", "jsonschema")
_MODELS_NOT_INSTALLED = (
    "models-not-installed",
    "Models cannot be run here ({missing} missing). Install what they need with: "
    "pip install 'assay-gate[worker]', or 'assay-gate[vllm]' on a machine with a GPU.",
)

COMMANDS = {
    "inspect": "Show how raw files are understood, what they hold and what is wrong with them.",
    "clean": "Clean raw files by a recipe and write sets, report and card.",
    "split": "Cut a holdout set: stratified, groups and near duplicates on one side.",
    "mix": "Mix general data into training data, against forgetting.",
    "leakage": "Compare sets pair by pair for exact and near duplicates.",
    "review": "Look through a random selection of examples: good, bad or fix.",
    "make": "Make examples from templates.",
    "distil": "Let models answer inputs and keep the best answers as examples.",
    "screen": "Let a model look for sensitive content that rules cannot recognise.",
}


def add_local_commands(
    group: typer.Typer, *, become: Callable[..., None] = become_program, panel: str | None = None
) -> None:
    """Add the commands to `assay dataset`; options, --help included, go to the program behind them."""
    pass_on = {"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []}
    for name, summary in COMMANDS.items():
        group.command(name, help=summary, context_settings=pass_on, rich_help_panel=panel)(
            _make_command(name, become)
        )


def _make_command(name: str, become: Callable[..., None]) -> Callable[[typer.Context], None]:
    def run(context: typer.Context) -> None:
        os.environ[PROGRAM_NAME_VARIABLE] = "assay dataset"
        if name in MODEL_MODULES:
            become(
                MODEL_MODULES[name],
                context.args,
                needed_packages=_NEEDED_FOR_MODELS,
                not_installed=_MODELS_NOT_INSTALLED,
            )
            return
        become(
            DATA_MODULE,
            [name, *context.args],
            needed_packages=_NEEDED_PACKAGES,
            not_installed=_NOT_INSTALLED,
        )

    return run
