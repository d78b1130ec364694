"""The recipe of a preparation: everything that decides what becomes of raw files, besides the files.

The same files, recipe and code give the same sets, byte for byte.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from training.engine.data.checks.catalogue import CHECKS
from training.engine.data.checks.check import CheckKind
from training.engine.data.cleaning.catalogue import DEFAULT_STEPS, STEPS
from training.engine.data.cleaning.step import StepKind
from training.engine.data.intake.settings import IntakeSettings
from training.engine.data.near_duplicates import NEAR_DUPLICATE_SIMILARITY
from training.engine.errors import ConfigInvalid, Fault
from training.engine.settings_rules import (
    TEXT,
    Rule,
    choice,
    count,
    number,
    optional,
    read_section,
    unknown_key,
)

ROLES: Final = ("train", "general", "holdout", "ood", "regression", "canary")
DEFAULT_SEED: Final = 20240601
MAX_STEPS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRequest:
    """A cleaning step with all of its parameters."""

    kind: StepKind
    parameters: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the form used in recipes."""
        return {"step": self.kind.name, **_plain(self.parameters)}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRequest:
    """A check with all of its parameters."""

    kind: CheckKind
    parameters: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """Return the form used in recipes."""
        return {"check": self.kind.name, **_plain(self.parameters)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitSettings:
    """How a holdout set is cut from the training data (MISSION F1).

    Attributes:
        holdout_fraction: Part of the examples that goes to the holdout set, above 0 and at most 0.5; 0.05-0.1
            is usual.
        stratify_by: ``category``, ``tags/NAME`` or ``answer/FIELD`` of a JSON answer; None cuts at random.
        group_by: ``group``, ``tags/NAME`` or ``origin/NAME``: examples with the same value stay on one side;
            None uses ``group`` where examples have one.
        threshold: Inputs of this similarity (0-1) or more stay on one side, so that the cut does not leak.
    """

    holdout_fraction: float = 0.1
    stratify_by: str | None = None
    group_by: str | None = None
    threshold: float = NEAR_DUPLICATE_SIMILARITY


@dataclass(frozen=True, slots=True, kw_only=True)
class MixSettings:
    """What is mixed into the training set (MISSION C4).

    Attributes:
        general_fraction: Part of the result that is general instruction data, 0-0.5; 0.05-0.2 is usual.
        unchanged_fraction: Part of the result that has nothing to change, 0-0.5; about 0.1 for tasks that
            rewrite.
        balance_by: ``category``, ``tags/NAME`` or ``answer/FIELD`` whose rare values are repeated; None
            repeats nothing.
        max_repeats: Copies of one example at most, itself included, 1-10.
    """

    general_fraction: float = 0.0
    unchanged_fraction: float = 0.0
    balance_by: str | None = None
    max_repeats: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """A preparation.

    Attributes:
        role: What the main set is for.
        seed: Of every random choice.
        intake: How raw rows become examples.
        clean: Steps in their order.
        checks: In their order.
        split: None cuts no holdout set.
        mix: None mixes nothing.
        leakage_threshold: Smallest similarity (0-1) of a near duplicate between two sets.
    """

    role: str = "train"
    seed: int = DEFAULT_SEED
    intake: IntakeSettings
    clean: tuple[StepRequest, ...]
    checks: tuple[CheckRequest, ...]
    split: SplitSettings | None = None
    mix: MixSettings | None = None
    leakage_threshold: float = NEAR_DUPLICATE_SIMILARITY

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> "Recipe":
        """Read a recipe; what is left out takes its default: all steps and checks, no split, no mix.

        Raises:
            ConfigInvalid: ``recipe-invalid`` with every fault and its place, such as ``clean[2].threshold``.
        """
        faults: list[Fault] = []
        faults += [unknown_key(str(key), str(key), list(_KEYS)) for key in raw if key not in _KEYS]
        top = read_section("recipe", {key: raw[key] for key in _TOP_RULES if key in raw}, _TOP_RULES, faults)
        intake = _read_intake(raw.get("intake", {}), faults)
        clean = _read_steps(raw.get("clean"), faults)
        checks = _read_checks(raw.get("checks"), faults)
        split = _read_part("split", raw.get("split"), _SPLIT_RULES, SplitSettings, faults)
        mix = _read_part("mix", raw.get("mix"), _MIX_RULES, MixSettings, faults)
        role = top.get("role", "train")
        for name, part in (("split", split), ("mix", mix)):
            if part is not None and role != "train":
                message = f"a {name} is made for role train, not {role}; leave it out"
                faults.append(Fault(code="role-without-split", message=message, where=name))
        if faults or intake is None:
            listed = "; ".join(f"{fault.where}: {fault.message}" for fault in faults)
            raise ConfigInvalid(
                "recipe-invalid", f"The recipe has {len(faults)} fault(s): {listed}", faults=faults
            )
        return cls(intake=intake, clean=clean, checks=checks, split=split, mix=mix, **top)

    def to_json(self) -> dict[str, Any]:
        """Return everything, defaults included; ``from_json`` of it gives an equal recipe."""
        return {
            "role": self.role,
            "seed": self.seed,
            "intake": self.intake.to_json(),
            "clean": [step.to_json() for step in self.clean],
            "checks": [check.to_json() for check in self.checks],
            "split": None if self.split is None else asdict(self.split),
            "mix": None if self.mix is None else asdict(self.mix),
            "leakage_threshold": self.leakage_threshold,
        }


_SELECTOR = Rule("category, group, tags/NAME, origin/NAME or answer/FIELD", TEXT.read)
_TOP_RULES: Mapping[str, Rule] = {
    "role": choice(*ROLES),
    "seed": count(0, 2**32 - 1),
    "leakage_threshold": number(0.5, 1),
}
_SPLIT_RULES: Mapping[str, Rule] = {
    "holdout_fraction": number(0, 0.5, low_open=True),
    "stratify_by": optional(_SELECTOR),
    "group_by": optional(_SELECTOR),
    "threshold": number(0.5, 1),
}
_MIX_RULES: Mapping[str, Rule] = {
    "general_fraction": number(0, 0.5),
    "unchanged_fraction": number(0, 0.5),
    "balance_by": optional(_SELECTOR),
    "max_repeats": count(1, 10),
}
_KEYS = (*_TOP_RULES, "intake", "clean", "checks", "split", "mix")


def _read_intake(raw: Any, faults: list[Fault]) -> IntakeSettings | None:
    if not isinstance(raw, Mapping):
        faults.append(Fault(code="wrong-type", message="must be an object", where="intake"))
        return None
    try:
        return IntakeSettings.from_json(raw)
    except ConfigInvalid as error:
        faults += error.faults
        return None


def _read_part(section: str, raw: Any, rules: Mapping[str, Rule], kind: Any, faults: list[Fault]) -> Any:
    if raw is None:
        return None
    return kind(**read_section(section, raw, rules, faults))


def _read_steps(raw: Any, faults: list[Fault]) -> tuple[StepRequest, ...]:
    if raw is None:
        raw = [{"step": name} for name in DEFAULT_STEPS]
    return tuple(
        StepRequest(kind=STEPS[name], parameters=parameters)
        for name, parameters in _read_named(raw, "clean", "step", STEPS, faults)
    )


def _read_checks(raw: Any, faults: list[Fault]) -> tuple[CheckRequest, ...]:
    if raw is None:
        raw = [{"check": name} for name in CHECKS]
    return tuple(
        CheckRequest(kind=CHECKS[name], parameters=parameters)
        for name, parameters in _read_named(raw, "checks", "check", CHECKS, faults)
    )


def _read_named(
    raw: Any, section: str, key: str, known: Mapping[str, Any], faults: list[Fault]
) -> Sequence[tuple[str, dict[str, Any]]]:
    """Read a list of names with parameters; an item may be a name alone."""
    if not isinstance(raw, list) or len(raw) > MAX_STEPS:
        message = f"must be a list of at most {MAX_STEPS} items"
        faults.append(Fault(code="wrong-type", message=message, where=section))
        return []
    result = []
    for index, item in enumerate(raw):
        where = f"{section}[{index}]"
        item = {key: item} if isinstance(item, str) else item
        name = item.get(key) if isinstance(item, Mapping) else None
        if not isinstance(name, str) or name not in known:
            fault = unknown_key(str(name), where, list(known))
            faults.append(fault)
            continue
        kind = known[name]
        given = {parameter: value for parameter, value in item.items() if parameter != key}
        result.append((name, {**kind.defaults, **read_section(where, given, kind.rules, faults)}))
    return result


def _plain(parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: list(value) if isinstance(value, tuple) else value for name, value in parameters.items()}
