r"""Which modules an adapter_config.json means: peft's own matching rules, on names instead of live modules.

Follows peft 0.21 `tuners_utils.check_target_module_exists` and `utils.other.get_pattern_key`. Patterns are
regular expressions written by a stranger: those that could take exponential time are refused by
`find_pattern_fault` before any is run (the time limit of the check job bounds the rest). Standard library
only.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from registry.artifacts.adapter_config import AdapterConfig

ALL_LINEAR = "all-linear"
HEAD_NAMES = frozenset({"lm_head", "embed_out", "output_layer"})
EMBEDDING_NAMES = frozenset(
    {"embed_tokens", "wte", "wpe", "word_embeddings", "embed_in", "position_embeddings"}
)
MAX_PATTERN_CHARS = 4_000
_MAX_UNBOUNDED = 24
_MAX_REPETITIONS = 3
_FIRST_NUMBER = re.compile(r".*?\.[^.]*\.(?P<index>\d+)\.")

_Value = TypeVar("_Value")


def find_pattern_fault(pattern: str) -> str | None:
    """Return why a regular expression is not run (invalid, too long, exponential); None when it is fine.

    A group that repeats without bound and holds an alternative or another repetition, such as ``(a+)*``, can
    take exponential time. A bounded number of repetitions one after the other, as in real configs, takes
    polynomial time.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"it has {len(pattern)} characters, more than {MAX_PATTERN_CHARS}"
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"it is not a valid regular expression: {error}"
    return _find_repetition_fault(pattern)


def _find_repetition_fault(pattern: str) -> str | None:
    bare = re.sub(r"\\.", "x", pattern, flags=re.DOTALL)
    bare = re.sub(r"\[\^?\]?[^\]]*\]", "x", bare)
    # The marks of special groups and of lazy and possessive repetitions are no repetitions themselves.
    bare = re.sub(r"\(\?(P?<\w+>|<?[=!]|[a-zA-Z-]*:|>)?", "(", bare)
    bare = re.sub(r"([*+?}])[?+]", r"\1", bare)
    open_groups = [False]  # for each open group: whether it holds a repetition or an alternative
    num_unbounded = 0
    for index, char in enumerate(bare):
        is_unbounded = _is_unbounded_at(bare, index)
        num_unbounded += is_unbounded
        if char == "(":
            open_groups.append(False)
        elif char == ")" and len(open_groups) > 1:
            is_complex = open_groups.pop()
            if is_complex and _is_unbounded_at(bare, index + 1):
                return (
                    "a repeated group holds another repetition or alternative: it can take exponential time"
                )
            open_groups[-1] = open_groups[-1] or is_complex
        elif is_unbounded or char in "|?":
            open_groups[-1] = True
    if num_unbounded > _MAX_UNBOUNDED:
        return f"it has {num_unbounded} unbounded repetitions, more than {_MAX_UNBOUNDED}"
    return None


def _is_unbounded_at(pattern: str, index: int) -> bool:
    rest = pattern[index : index + 16]
    if rest[:1] == "*" or rest[:1] == "+":
        return True
    bounds = re.match(r"\{(\d*),(\d*)\}", rest)
    # An upper bound of more than a few is as bad as none.
    return bounds is not None and (not bounds[2] or int(bounds[2]) > _MAX_REPETITIONS)


def match_first(patterns: Mapping[str, _Value], module: str) -> _Value | None:
    r"""Return the value of the first pattern that matches as ``(.*\.)?(PATTERN)$``; None when none does."""
    for pattern, value in patterns.items():
        if re.match(rf"(.*\.)?({pattern})$", module):
            return value
    return None


def leaf_name(module: str) -> str:
    """Return the last part of a module's dotted name."""
    return module.rpartition(".")[2]


def is_target(config: AdapterConfig, module: str) -> bool:
    """Return whether peft would put an adapter on the module.

    Args:
        config: with target_modules set; patterns must have passed `find_pattern_fault`.
        module: dotted name in the base model, for example "model.layers.0.self_attn.q_proj".
    """
    if config.target_modules is None or _names_or_pattern_match(config.exclude_modules, module):
        return False
    if config.target_modules == ALL_LINEAR:
        return leaf_name(module) not in HEAD_NAMES | EMBEDDING_NAMES
    if not _names_or_pattern_match(config.target_modules, module):
        return False
    if isinstance(config.target_modules, str) or config.layers_to_transform is None:
        return True
    if module in config.target_modules:
        return True  # a full name counts whatever its layer
    index = layer_index(module, config.layers_pattern)
    return index is not None and index in config.layers_to_transform


def _names_or_pattern_match(names: tuple[str, ...] | str | None, module: str) -> bool:
    if not names:
        return False
    if isinstance(names, str):
        return re.fullmatch(names, module) is not None
    return module in names or module.endswith(tuple(f".{name}" for name in names))


def layer_index(module: str, layers_pattern: Iterable[str] = ()) -> int | None:
    """Return the number of the layer a module is in, None when it is in none (the embedding, the head)."""
    patterns = list(layers_pattern)
    if not patterns:
        match = _FIRST_NUMBER.match(module)
        return None if match is None else int(match["index"])
    for pattern in patterns:
        match = re.match(rf"(?:^|.*?\.){pattern}\.(?P<index>\d+)\.", module)
        if match is not None:
            return int(match["index"])
    return None
