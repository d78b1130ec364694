"""What the base model named in an adapter_config.json is worth: a hint for people, never a proof.

The name is often a path on somebody's machine, a quantised re-upload or null; the base chosen at submission
counts, and the shapes are checked against it. Standard library only.
"""

import re

from registry.artifacts.adapter_config import CONFIG_FILE, AdapterConfig
from registry.artifacts.findings import Finding, shown

_QUANTISED = re.compile(r"(bnb|4-?bit|8-?bit|int[48]|gptq|awq|gguf|fp8|nf4)", re.IGNORECASE)
_LOCAL = re.compile(r"^(/|\.{1,2}/|~|[A-Za-z]:\\)")


def is_local_path(name: str) -> bool:
    """Return whether the name can only be a path on the machine where the adapter was trained."""
    return _LOCAL.match(name) is not None or name.count("/") > 1 or "\\" in name


def is_quantised_name(name: str) -> bool:
    """Return whether the name says that the base was quantised ("…-bnb-4bit", "…-GPTQ", "…-AWQ")."""
    return _QUANTISED.search(name) is not None


def describe_base_hint(config: AdapterConfig) -> Finding:
    """Return a finding that says what the file names as its base; a warning when that was quantised."""
    where = f"{CONFIG_FILE}: base_model_name_or_path"
    if config.base_hint is None:
        return Finding.info(
            "adapter-base-hint-missing", "The file names no base model; the shapes decide.", where=where
        )
    name = shown(config.base_hint)
    if is_quantised_name(config.base_hint):
        message = (
            f"It was trained on {name!r}, a quantised base. On the unquantised weights it acts slightly "
            "otherwise than in "
            "training; the evaluation judges the merged model as it is."
        )
        return Finding.warning("adapter-base-hint-quantised", message, where=where)
    kind = "a path on another machine" if is_local_path(config.base_hint) else "a name"
    message = (
        f"The file names {name!r} as its base, {kind}. That is only a hint: the base chosen at submission "
        "counts, by its shapes."
    )
    return Finding.info("adapter-base-hint", message, where=where)
