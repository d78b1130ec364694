"""Puts a verdict into plain words, with the remedies in the order in which they should be tried."""

from collections.abc import Mapping, Sequence
from typing import Final

from evaluation.engine.gate.outcome import Finding

RULE_TITLES: Final[Mapping[str, str]] = {
    "ood_ratio": "OOD against holdout",
    "regression_drop": "general ability",
    "json_parse_rate": "JSON output",
    "beats_baseline": "better than the prompt alone",
    "min_score": "target score",
    "canary_parity": "both forms answer alike",
    "behaviour": "behaviour",
    "leakage": "leakage",
    "evidence": "evidence",
    "blind_review": "blind review",
}

REMEDIES: Final[Mapping[str, tuple[str, ...]]] = {
    # MISSION F8 gives this order.
    "regression_drop": (
        "put more general instruction data into the mix (5 % to 15 %)",
        "lower the learning rate or train fewer epochs",
        "put LoRA on the last two thirds of the layers only",
    ),
    "ood_ratio": (
        "add training samples from other sources and in other wording",
        "train fewer epochs: the adapter may have learned the wording of its training data",
    ),
    "json_parse_rate": (
        "check that the end token is trained and no answer is cut off by the maximum length",
        "make field order and punctuation uniform across the training answers",
    ),
    "beats_baseline": ("ship the prompt, or improve the training data: this fine-tune is not worth serving",),
    "min_score": ("look at the fields that are wrong most often and add training samples for them",),
    "canary_parity": ("check the scale (alpha / r), unmatched layer names and the precision of the merge",),
    "behaviour": (
        "check that the end token is in the loss, and that training and serving use one chat template",
    ),
    "leakage": ("take the named examples out of the training data and train again",),
    "evidence": ("add examples and have a person confirm the references",),
    "blind_review": ("complete the blind review",),
}
"""What to try, first things first, by rule."""


def explain(verdict: str, findings: Sequence[Finding]) -> str:
    """Return the verdict in plain words.

    Args:
        verdict: passed, rejected or inconclusive.
        findings: The rules' findings.
    """
    checked = [finding for finding in findings if finding.outcome != "skipped"]
    failed = [finding for finding in checked if finding.outcome == "failed"]
    unknown = [finding for finding in checked if finding.outcome == "inconclusive"]
    if verdict == "passed":
        return f"Passed: all {len(checked)} rules of the policy are met."
    if not checked:
        return "Inconclusive: the policy has no rules."
    lines = [f"Rejected: {len(failed)} of {len(checked)} rules failed."] if failed else []
    lines.extend(_describe(finding) for finding in failed)
    if unknown:
        lead = "Also undecided" if failed else "Inconclusive"
        lines.append(f"{lead}: {len(unknown)} of {len(checked)} rules cannot be decided.")
        lines.extend(_describe(finding) for finding in unknown)
    return "\n".join(lines)


def _describe(finding: Finding) -> str:
    title = RULE_TITLES.get(finding.name, finding.name)
    weak = [part for part in finding.parts if part.outcome == finding.outcome]
    detail = "; ".join(f"{part.name}: {part.explanation}" for part in weak) or finding.explanation
    line = f"- {title} ({finding.name}): {detail}."
    remedies = (
        REMEDIES.get(finding.name, ()) if finding.outcome == "failed" or finding.name == "evidence" else ()
    )
    if len(remedies) > 1:
        steps = ", ".join(f"{number}. {remedy}" for number, remedy in enumerate(remedies, start=1))
        return f"{line} To try, in this order: {steps}."
    return f"{line} To do: {remedies[0]}." if remedies else line
