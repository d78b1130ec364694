"""An incident made ready for its page."""

from collections.abc import Mapping
from typing import Any, Final

from training.admin.following import flat_rows
from training.choices import UNCLOSED_INCIDENT_STATES, CheckAnswer, IncidentState
from training.models import Incident
from training.selectors.handbook import choose_text, list_symptoms, name_symptom
from training.selectors.incidents import current_fields, list_entries, list_incidents, word_check_question

MAX_SHOWN_ENTRIES: Final = 500
MAX_SHOWN_OTHERS: Final = 10


def build_incident_context(incident: Incident, draft: Mapping[str, Any]) -> dict[str, Any]:
    """What the template shows of an incident.

    Args:
        incident: As `get_incident` gives it.
        draft: What the person had written when the page is shown again; empty at first.
    """
    row = incident.symptom
    entries = list(list_entries(incident)[: MAX_SHOWN_ENTRIES + 1])
    others = (
        list_incidents(symptom=incident.symptom_id).exclude(pk=incident.pk)
        if row
        else Incident.objects.none()
    )
    return {
        "incident": incident,
        "symptom_name": "" if row is None else name_symptom(row),
        "text": None if row is None else choose_text(row),
        "entries": entries[:MAX_SHOWN_ENTRIES],
        "has_more_entries": len(entries) > MAX_SHOWN_ENTRIES,
        "config_rows": tuple(flat_rows(incident.configuration)),
        "others": others[:MAX_SHOWN_OTHERS],
        "check_question": word_check_question(incident),
        "check_answers": CheckAnswer.choices,
        "draft": {**current_fields(incident), **draft},
        "draft_step": draft.get("text", ""),
        "is_draft": bool(draft),
        "symptom_choices": list_symptom_choices(),
        "is_open": incident.state == IncidentState.OPEN,
        "is_unclosed": incident.state in UNCLOSED_INCIDENT_STATES,
    }


def list_symptom_choices() -> list[tuple[str, str]]:
    """Code and text of each row, for choosing one."""
    return [(row.code, name_symptom(row)) for row in list_symptoms()]
