"""Policies: which rules must pass, with which thresholds. A policy version never changes.

The default policy is DESIGN section 5 word for word. A team may leave a rule out or set its thresholds; it
cannot make a missing number pass.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from jsonschema import Draft202012Validator

from evaluation.engine.canonical import canonical_digest
from evaluation.engine.errors import Fault, PolicyError, describe_faults

Confidence = Literal["point", "bound"]
"""``point``: the value decides. ``bound``: the 95 % interval must clear the threshold; straddling is
inconclusive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OodRatioRule:
    """score(ood) / score(holdout) is at least ``min_ratio`` (F2, G1)."""

    min_ratio: float = 0.85
    confidence: Confidence = "point"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegressionDropRule:
    """No dimension's score falls by more than ``max_drop`` (a fraction; 0.05 is five points) (F8, G1)."""

    max_drop: float = 0.05
    confidence: Confidence = "point"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonParseRateRule:
    """On holdout and on OOD outputs are strict JSON and valid under the schema, no less often than the
    baseline's (F5).
    """

    min_strict_parse_rate: float = 0.98
    min_schema_valid_rate: float = 0.95
    confidence: Confidence = "point"


@dataclass(frozen=True, slots=True, kw_only=True)
class BeatsBaselineRule:
    """score(holdout) is above the prompt-only baseline's by more than ``min_margin`` (F9)."""

    min_margin: float = 0.0
    confidence: Confidence = "point"


@dataclass(frozen=True, slots=True, kw_only=True)
class MinScoreRule:
    """score(holdout) reaches the target that the suite's owner states (F4)."""

    confidence: Confidence = "point"


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryParityRule:
    """Both forms agree on the canaries, and the adapter changes something (E2, E3)."""

    max_diverged: int = 0
    min_differ_from_base: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BehaviourRule:
    """Outputs end, and hold no residue of the chat template (F10, T5).

    ``max_open_regression_increase`` limits how much both rates may rise above the baseline's on open
    regression prompts, where a base model also runs into max_tokens.
    """

    max_never_stops_rate: float = 0.01
    max_template_residue_rate: float = 0.01
    max_open_regression_increase: float = 0.05
    confidence: Confidence = "point"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakageRule:
    """No exact or near duplicate between training and evaluation sets (C6)."""

    max_pairs: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceRule:
    """Sets are large enough and their references are verified (F4)."""

    min_examples: int = 100
    min_canaries: int = 50
    min_verified_fraction: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BlindReviewRule:
    """Optional: in a blind review no dimension's mean is below the baseline's (F7)."""

    dimensions: tuple[str, ...] = ("accuracy", "format", "readability")
    min_outputs: int = 50


RuleSettings = (
    OodRatioRule
    | RegressionDropRule
    | JsonParseRateRule
    | BeatsBaselineRule
    | MinScoreRule
    | CanaryParityRule
    | BehaviourRule
    | LeakageRule
    | EvidenceRule
    | BlindReviewRule
)

RULE_SETTINGS: Final[Mapping[str, Callable[..., RuleSettings]]] = {
    "ood_ratio": OodRatioRule,
    "regression_drop": RegressionDropRule,
    "json_parse_rate": JsonParseRateRule,
    "beats_baseline": BeatsBaselineRule,
    "min_score": MinScoreRule,
    "canary_parity": CanaryParityRule,
    "behaviour": BehaviourRule,
    "leakage": LeakageRule,
    "evidence": EvidenceRule,
    "blind_review": BlindReviewRule,
}
"""All rules by name, in the order in which a decision lists them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A policy that was checked.

    Attributes:
        name: Name of the policy.
        version: Counts from 1.
        rules: Settings of the rules in force, by name.
        description: What the policy is for.
    """

    name: str
    version: int
    rules: Mapping[str, RuleSettings] = field(default_factory=dict)
    description: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the document that ``load_policy`` reads, every threshold spelled out."""
        return {
            "name": self.name,
            "version": self.version,
            "description": self.description,
            "rules": {name: _settings_to_json(settings) for name, settings in self.rules.items()},
        }

    @property
    def digest(self) -> str:
        """sha256 of the policy's canonical JSON."""
        return canonical_digest(self.to_json())


DEFAULT_POLICY: Final = Policy(
    name="default",
    version=1,
    description="OOD ratio, regression drop, JSON, baseline, target, parity, behaviour, leakage, evidence.",
    rules={
        "ood_ratio": OodRatioRule(),
        "regression_drop": RegressionDropRule(),
        "json_parse_rate": JsonParseRateRule(),
        "beats_baseline": BeatsBaselineRule(),
        "min_score": MinScoreRule(),
        "canary_parity": CanaryParityRule(),
        "behaviour": BehaviourRule(),
        "leakage": LeakageRule(),
        "evidence": EvidenceRule(),
    },
)

_FRACTION: Final = {"type": "number", "minimum": 0, "maximum": 1}
_COUNT: Final = {"type": "integer", "minimum": 0}
_CONFIDENCE: Final = {"enum": ["point", "bound"]}

_RULE_PROPERTIES: Final[Mapping[str, dict[str, Any]]] = {
    "ood_ratio": {
        "min_ratio": {"type": "number", "exclusiveMinimum": 0, "maximum": 10},
        "confidence": _CONFIDENCE,
    },
    "regression_drop": {"max_drop": _FRACTION, "confidence": _CONFIDENCE},
    "json_parse_rate": {
        "min_strict_parse_rate": _FRACTION,
        "min_schema_valid_rate": _FRACTION,
        "confidence": _CONFIDENCE,
    },
    "beats_baseline": {"min_margin": _FRACTION, "confidence": _CONFIDENCE},
    "min_score": {"confidence": _CONFIDENCE},
    "canary_parity": {"max_diverged": _COUNT, "min_differ_from_base": _COUNT},
    "behaviour": {
        "max_never_stops_rate": _FRACTION,
        "max_template_residue_rate": _FRACTION,
        "max_open_regression_increase": _FRACTION,
        "confidence": _CONFIDENCE,
    },
    "leakage": {"max_pairs": _COUNT},
    "evidence": {
        "min_examples": {"type": "integer", "minimum": 1},
        "min_canaries": {"type": "integer", "minimum": 1},
        "min_verified_fraction": _FRACTION,
    },
    "blind_review": {
        "dimensions": {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True},
        "min_outputs": {"type": "integer", "minimum": 1},
    },
}

POLICY_SCHEMA: Final[dict[str, Any]] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "Assay policy",
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "version", "rules"],
    "properties": {
        "name": {"type": "string", "pattern": "^[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?$"},
        "version": {"type": "integer", "minimum": 1},
        "description": {"type": "string"},
        "rules": {
            "type": "object",
            "minProperties": 1,
            "additionalProperties": False,
            "properties": {
                name: {"type": "object", "additionalProperties": False, "properties": properties}
                for name, properties in _RULE_PROPERTIES.items()
            },
        },
    },
}
"""JSON Schema of a policy document; a setting that is left out takes the default policy's value."""


def load_policy(document: Any) -> Policy:
    """Check a policy document and build the policy.

    Raises:
        PolicyError: With every fault (code ``policy-invalid``).
    """
    errors = sorted(
        Draft202012Validator(POLICY_SCHEMA).iter_errors(document), key=lambda error: error.json_path
    )
    if errors:
        faults = [
            Fault(
                "policy-schema",
                error.message[:300],
                f"policy: {error.json_path.removeprefix('$').lstrip('.')}",
            )
            for error in errors
        ]
        raise PolicyError("policy-invalid", f"the policy has {describe_faults(faults)}", faults=faults)
    given = document["rules"]
    rules = {
        name: _build_settings(settings, given[name])
        for name, settings in RULE_SETTINGS.items()
        if name in given
    }
    return Policy(
        name=document["name"],
        version=int(document["version"]),
        description=document.get("description", ""),
        rules=rules,
    )


def _build_settings(settings: Callable[..., RuleSettings], given: Mapping[str, Any]) -> RuleSettings:
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in given.items()}
    return settings(**values)


def _settings_to_json(settings: RuleSettings) -> dict[str, Any]:
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in asdict(settings).items()
    }
