"""What a cleaning step is: a named, versioned action over a stream of examples, in one pass or two."""

from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from training.engine.data.examples import Example
from training.engine.settings_rules import Rule

TokenCounter = Callable[[str], int]
"""Gives the number of tokens of a text under the base model's tokenizer, special tokens not counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a step did to one example.

    Attributes:
        example: The example as it goes on; None when it was dropped.
        reasons: Stable kebab-case codes of what was done, each once; empty when nothing was. A kept and
            equal example with reasons was flagged.
        detail: For people: the value, the other example's id; "" when the reason says it all.
    """

    example: Example | None
    reasons: tuple[str, ...] = ()
    detail: str = ""

    @classmethod
    def kept(cls, example: Example) -> "Outcome":
        """The example goes on as it is."""
        return cls(example=example)

    @classmethod
    def changed(cls, example: Example, *reasons: str, detail: str = "") -> "Outcome":
        """The example goes on with other content."""
        return cls(example=example, reasons=tuple(dict.fromkeys(reasons)), detail=detail)

    @classmethod
    def flagged(cls, example: Example, *reasons: str, detail: str = "") -> "Outcome":
        """The example goes on as it is, but a person should look at it."""
        return cls(example=example, reasons=tuple(dict.fromkeys(reasons)), detail=detail)

    @classmethod
    def dropped(cls, reason: str, *, detail: str = "") -> "Outcome":
        """The example ends here."""
        return cls(example=None, reasons=(reason,), detail=detail)


class Step(Protocol):
    """One cleaning action at work on one stream; holds the state of that stream only."""

    def observe(self, example: Example) -> None:
        """See every example once before the first ``apply``; called only for kinds with
        ``needs_first_pass``.
        """

    def apply(self, example: Example) -> Outcome:
        """Treat one example; examples come in the order of ``observe``."""

    def facts(self) -> Mapping[str, Any]:
        """Return measured values for the report, as JSON, after the last ``apply``."""


@runtime_checkable
class LocalStep(Step, Protocol):
    """A step of a kind that ``is_local`` and counts something.

    Attributes:
        counts: All that ``apply`` changes, and ``observe`` too where the kind ``observes_locally``.
    """

    counts: Counter[Hashable]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepContext:
    """What a step may use besides its parameters.

    Attributes:
        seed: For every random choice of the step.
        scratch: An empty folder of its own for large intermediate data.
        count_tokens: None when no tokenizer was given; steps that need one then say so in their facts.
    """

    seed: int
    scratch: Path
    count_tokens: TokenCounter | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepKind:
    """A cleaning action as recipes name it.

    Attributes:
        name: Stable snake_case name, such as ``drop_duplicates``.
        version: Raised with every change that can change an outcome; part of the code version.
        summary: One sentence for people.
        source: Requirement or paper behind it, such as ``MISSION C3(1)``.
        rules: A rule for each parameter.
        defaults: A value for each parameter.
        build: Makes the step from all parameters, defaults filled in, and the context.
        needs_first_pass: Whether ``observe`` must see all examples first.
        is_local: Whether copies of the step in other processes may treat parts of the examples: it pickles,
            what ``apply`` does hangs on the example and on what was observed only, and nothing changes by it
            but the step's ``counts``, which add up (see ``LocalStep``).
        observes_locally: Whether copies may observe as well.
    """

    name: str
    version: int
    summary: str
    source: str
    rules: Mapping[str, Rule] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    build: Callable[[Mapping[str, Any], StepContext], Step]
    needs_first_pass: bool = False
    is_local: bool = False
    observes_locally: bool = False
