r"""Which modules an adapter_config.json means: peft's own matching rules, on names instead of live modules.

Follows peft 0.21 `tuners_utils.check_target_module_exists` and `utils.other.get_pattern_key`. Patterns are
regular expressions written by a stranger: those that could take exponential time are refused by
`find_pattern_fault` before any is run (the time limit of the check job bounds the rest). Standard library
only.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from registry.artifacts.adapter_config import AdapterConfig

ALL_LINEAR = "all-linear"
HEAD_NAMES = frozenset({"lm_head", "embed_out", "output_layer"})
EMBEDDING_NAMES = frozenset(
    {"embed_tokens", "wte", "wpe", "word_embeddings", "embed_in", "position_embeddings"}
)
MAX_PATTERN_CHARS = 4_000
_MAX_IN_ROW = 5  # real configs have up to four
_FEW = 3
_FIRST_NUMBER = re.compile(r".*?\.[^.]*\.(?P<index>\d+)\.")

_Value = TypeVar("_Value")


def find_pattern_fault(pattern: str) -> str | None:
    """Return why a regular expression is not run (invalid, too long, too slow); None when it is fine.

    A repeated group that holds an alternative or a repetition of variable length, such as ``(a+)*``, can take
    exponential time; n unbounded repetitions in a row take time of degree n in the name's length. Both are
    judged on the text of the pattern, so some harmless patterns are refused as well.
    """
    if len(pattern) > MAX_PATTERN_CHARS:
        return f"it has {len(pattern)} characters, more than {MAX_PATTERN_CHARS}"
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        return f"it is not a valid regular expression: {error}"
    return _find_repetition_fault(_bare_structure(pattern))


@dataclass(slots=True)
class _Group:
    """An open group: whether it can match in several ways, and its unbounded repetitions in a row."""

    is_variable: bool = False
    num_in_row: int = 0
    max_in_row: int = 0

    def close_alternative(self) -> None:
        self.max_in_row = max(self.max_in_row, self.num_in_row)
        self.num_in_row = 0


def _bare_structure(pattern: str) -> str:
    """Reduce a pattern to its groups, alternatives and repetitions."""
    bare = re.sub(r"\\.", "x", pattern, flags=re.DOTALL)
    bare = re.sub(r"\[\^?\]?[^\]]*\]", "x", bare)
    # The marks of special groups and of lazy and possessive repetitions are no repetitions themselves.
    bare = re.sub(r"\(\?(P?<\w+>|<?[=!]|[a-zA-Z-]*:|>)?", "(", bare)
    return re.sub(r"([*+?}])[?+]", r"\1", bare)


def _find_repetition_fault(bare: str) -> str | None:
    groups = [_Group()]
    for index, char in enumerate(bare):
        least, most = _repetition_at(bare, index)
        if char == "(":
            groups.append(_Group())
        elif char == ")" and len(groups) > 1:
            inner = groups.pop()
            inner.close_alternative()
            if inner.is_variable and _repetition_at(bare, index + 1)[1] > 1:
                return (
                    "a repeated group holds another repetition or alternative: it can take exponential time"
                )
            groups[-1].is_variable |= inner.is_variable
            groups[-1].num_in_row += inner.max_in_row
        elif char == "|":
            groups[-1].is_variable = True
            groups[-1].close_alternative()
        elif least != most:
            groups[-1].is_variable = True
            groups[-1].num_in_row += most > _FEW
    groups[0].close_alternative()
    if groups[0].max_in_row > _MAX_IN_ROW:
        return f"it has {groups[0].max_in_row} unbounded repetitions in a row, more than {_MAX_IN_ROW}"
    return None


def _repetition_at(bare: str, index: int) -> tuple[int, float]:
    """Return the least and most repetitions that a mark at this place asks for; (1, 1) without one."""
    marks: dict[str, tuple[int, float]] = {"*": (0, math.inf), "+": (1, math.inf), "?": (0, 1)}
    if bare[index : index + 1] in marks:
        return marks[bare[index]]
    bounds = re.compile(r"\{(\d*)(,?)(\d*)\}").match(bare, index)
    if bounds is None or not (bounds[1] or bounds[2]):
        return 1, 1
    least = int(bounds[1] or 0)
    if not bounds[2]:
        return least, least
    return least, int(bounds[3]) if bounds[3] else math.inf


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
