"""One sample of a triage, and the verdict, made ready for the page."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.urls import reverse

from evaluation.engine.triage.kinds import AMBIGUOUS, CORRECT, FailureKind, Outcome
from evaluation.engine.triage.verdict import Advice
from evaluation.models import Triage, TriageItem
from evaluation.selectors.triages import current_verdict, measure_progress
from registry.visible_text import visible_text

KEYS: Final[Mapping[str, str]] = {
    "f": FailureKind.FORMAT.value,
    "s": FailureKind.STYLE.value,
    "u": FailureKind.UNKNOWN_FACT.value,
    "c": FailureKind.CALCULATION.value,
    "m": FailureKind.MISSING_CAPABILITY.value,
    "r": CORRECT,
}
"""Keys of the page."""

LABELS: Final[Mapping[str, str]] = {
    FailureKind.FORMAT.value: "Format",
    FailureKind.STYLE.value: "Style",
    FailureKind.UNKNOWN_FACT.value: "Unknown fact",
    FailureKind.CALCULATION.value: "Calculation",
    FailureKind.MISSING_CAPABILITY.value: "Missing capability",
    CORRECT: "Right answer",
    AMBIGUOUS: "Ambiguous",
}
ADVICE_LABELS: Final[Mapping[str, str]] = {
    Advice.FINE_TUNE.value: "Fine-tune",
    Advice.RETRIEVAL.value: "Retrieval",
    Advice.CODE_OR_RULES.value: "Code or rules",
    Advice.OTHER_BASE.value: "Another base",
    Advice.MIXED.value: "Several treatments",
    Advice.PROMPT_IS_ENOUGH.value: "The prompt is enough",
    Advice.UNDECIDED.value: "Undecided",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A button: the kind, its words and its key; `is_chosen` by a person, `is_suggested` by the rules."""

    kind: str
    label: str
    key: str
    is_chosen: bool
    is_suggested: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    """One line of the list of samples."""

    item: TriageItem
    url: str
    rule_label: str
    confirmed_label: str
    outcome_class: str


def build_report_context(triage: Triage) -> dict[str, Any]:
    """What the page of a triage shows."""
    summary: Mapping[str, Any] = triage.summary or {}
    items = list(triage.items.select_related("confirmed_by"))
    return {
        **build_verdict_context(triage),
        "prompts": [
            {**row, "kinds": _kinds(row.get("kinds") or {})} for row in summary.get("prompts", ()) if row
        ],
        "best_prompt": summary.get("best_prompt"),
        "warnings": summary.get("warnings", ()),
        "rows": [
            ItemRow(
                item=item,
                url=_item_url(triage, item.position),
                rule_label=LABELS.get(item.rule_kind, ""),
                confirmed_label=LABELS.get(item.confirmed_kind, ""),
                outcome_class=_outcome_class(item.outcome),
            )
            for item in items
        ],
        "prompt_texts": [
            {
                "name": prompt["name"],
                "text": visible_text(prompt["system_prompt"]),
                "num_few_shot": len(prompt.get("few_shot") or ()),
            }
            for prompt in triage.config.get("prompts", ())
        ],
    }


def build_verdict_context(triage: Triage) -> dict[str, Any]:
    """The verdict, stored or as it stands now, and how far people are."""
    verdict = triage.verdict
    if verdict is None:
        now = current_verdict(triage)
        verdict = None if now is None else now.to_json()
    progress = measure_progress(triage)
    return {
        "triage": triage,
        "verdict": verdict,
        "advice_label": ADVICE_LABELS.get(verdict["advice"], "") if verdict else "",
        "advice_class": _advice_class(verdict),
        "shares": [
            {**share, "percent": round(100 * share["fraction"]), "kind_texts": _kinds(share["kinds"])}
            for share in (verdict or {}).get("shares", ())
        ],
        "progress": progress,
    }


def build_item_context(triage: Triage, item: TriageItem, draft: Mapping[str, Any]) -> dict[str, Any]:
    """What the template shows of one sample.

    Args:
        triage: The triage.
        item: One of its samples.
        draft: What the person had written when the page is shown again; empty at first.
    """
    details = item.details
    sorting = details.get("sorting") or {}
    reference = str(details.get("reference") or "")
    shown = [
        (message.get("role", ""), visible_text(str(message.get("content", ""))))
        for message in details.get("messages") or ()
    ]
    return {
        **build_verdict_context(triage),
        "item": item,
        "messages_before": shown[:-1],
        "last_message": shown[-1:],
        "output": visible_text(_readable(str(details.get("output", "")), details.get("parse"))),
        "reference": visible_text(_readable(reference, "strict")),
        "signals": [
            {
                "label": LABELS.get(signal["kind"], signal["kind"]),
                "code": signal["code"],
                "percent": round(100 * signal["confidence"]),
                "message": visible_text(signal["message"]),
            }
            for signal in sorting.get("signals") or ()
        ],
        "rule_label": LABELS.get(item.rule_kind, ""),
        "leaning_label": LABELS.get(sorting.get("leaning") or "", ""),
        "confirmed_label": LABELS.get(item.confirmed_kind, ""),
        "outcome_class": _outcome_class(item.outcome),
        "passed_by": list(details.get("passed_by") or ()),
        "choices": [
            Choice(
                kind=kind,
                label=LABELS[kind],
                key=key,
                is_chosen=item.confirmed_kind == kind,
                is_suggested=item.rule_kind == kind,
            )
            for key, kind in KEYS.items()
        ],
        "note": draft.get("note", item.note),
        "previous_url": _item_url(triage, item.position - 1),
        "next_url": _item_url(triage, item.position + 1),
    }


def _readable(text: str, parse: object) -> str:
    """Strict JSON one field a line; every other text as it stands."""
    if parse != "strict":
        return text
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return json.dumps(value, ensure_ascii=False, indent=2) if isinstance(value, dict | list) else text


def _kinds(kinds: Mapping[str, int]) -> list[str]:
    return [f"{LABELS.get(kind, kind).lower()} {number}" for kind, number in kinds.items()]


def _outcome_class(outcome: str) -> str:
    classes = {Outcome.PASSED.value: "passed", Outcome.FAILED.value: "failed"}
    return classes.get(outcome, "inconclusive")


def _advice_class(verdict: Mapping[str, Any] | None) -> str:
    if verdict is None or verdict["is_preliminary"] or verdict["advice"] == Advice.UNDECIDED:
        return "inconclusive"
    return "rejected" if verdict["advice"] == Advice.OTHER_BASE else "passed"


def _item_url(triage: Triage, position: int) -> str:
    if not 1 <= position <= triage.num_samples:
        return ""
    return reverse("admin:evaluation_triage_item", args=(triage.pk, position))
