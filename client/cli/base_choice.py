"""Which base model a command means when none is named."""

from client.api import AssayApi
from client.errors import AssayApiError, UsageError


def choose_base_model(api: AssayApi, name: str | None, *, hint: str | None = None) -> str:
    """Return the named base model, or the only one that the server has.

    Args:
        api: The server.
        name: What the user said, or None.
        hint: What the adapter's own configuration says; often a path of another machine, so it is only shown.

    Raises:
        UsageError: The server has none, several, or not this one; the message lists them.
    """
    try:
        names = sorted(model.name for model in api.list_base_models())
    except AssayApiError as error:
        if error.status == 403 and name is not None:
            return name
        raise
    if not names:
        raise UsageError(
            "no-base-model", "The server has no base model yet. Register one: assay base add NAME DIR"
        )
    listed = ", ".join(names)
    if name is not None:
        if name not in names:
            raise UsageError(
                "base-model-unknown", f"There is no base model '{name}'. The server has: {listed}."
            )
        return name
    if len(names) == 1:
        return names[0]
    said = f" The adapter names '{hint}'." if hint else ""
    raise UsageError(
        "base-model-ambiguous", f"Say which base model with --base: the server has {listed}.{said}"
    )
