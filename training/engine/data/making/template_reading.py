"""Reading a template set from JSON, with every fault and its place.

A small set, all of the form::

    {
      "name": "tickets",
      "system_prompt": "Turn the customer's message into a ticket as one line of JSON.",
      "answer": ["problem", "urgency", "module", "action"],
      "slots": {
        "complaint": {"values": [
          {"text": "I cannot log in to {place}.", "labels": {"problem": "login"}, "keep": ["log in"]},
          {"text": "{Place} crashes.", "labels": {"problem": "crash"}}
        ]},
        "place": {"values": [
          {"text": "the mobile app", "labels": {"module": "mobile"}},
          {"text": "the web portal", "labels": {"module": "web"}}
        ]},
        "haste": {"values": [
          {"text": "It is urgent.", "labels": {"urgency": "high"}},
          {"text": "", "labels": {"urgency": "normal"}}
        ]},
        "greeting": {"values": ["Hello,", "Hi there,", ""]}
      },
      "templates": [
        {"id": "plain", "text": "{greeting} {complaint} {haste}"},
        {"id": "haste-first", "text": "{greeting} {haste} {complaint}"}
      ],
      "rules": [
        {"when": {"urgency": "high"}, "then": {"action": "escalate"}},
        {"when": {"problem": ["login"]}, "then": {"action": "unlock"}},
        {"when": {}, "then": {"action": "fix"}}
      ],
      "exclude": [{"problem": "crash", "module": "web"}],
      "noise": {"lower_case_fraction": 0.1},
      "output_schema": {"type": "object"}
    }

- A slot's value is a text, or an object with ``text``, ``labels`` and ``keep``. Values may hold slots
  themselves. ``{Place}`` is the slot ``place`` with a capital; ``{{`` and ``}}`` are braces.
- ``{"label": "amount", "values": ["100 EUR", "250 EUR"]}`` makes the text itself the value of the label, for
  tasks that extract.
- ``keep`` names the words that bear the labels. Left out, all words of a labelled text do; ``[]`` says that
  none does, as where a label shows by something not being said.
- Templates may carry ``labels`` and ``keep`` too.
- Every template must state each label that the answer or a rule needs, by itself or through its slots.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from registry.artifacts.findings import shown
from training.engine.data.making.distillation_settings import OBJECT
from training.engine.data.making.fault_lists import refuse_if_faulty
from training.engine.data.making.structured_answers import (
    AnswerSchema,
    NotStrictJson,
    parse_strict_json,
    to_compact_json,
)
from training.engine.data.making.template_checks import check_template_set
from training.engine.data.making.template_set import LabelRule, NoiseSettings, Template, TemplateSet, Wording
from training.engine.data.making.wordings import read_wording
from training.engine.errors import DataInvalid, Fault
from training.engine.settings_rules import NAMES, TEXT, Rule, number, optional, read_section

MAX_FILE_BYTES: Final = 16 << 20
MAX_NAME_CHARACTERS: Final = 64
_SLOT_NAME: Final = re.compile(r"[a-z][a-z0-9_]*")
_ROOT: Final = "template_set"
_REQUIRED: Final = ("name", "answer", "slots", "templates")


def read_template_file(path: Path) -> TemplateSet:
    """Read a template set from a JSON file.

    Raises:
        DataInvalid: ``template-file-unreadable`` when it is no strict JSON in UTF-8 of at most 16 MiB;
            ``template-set-invalid`` as in ``read_template_set``.
    """
    with path.open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise DataInvalid("template-file-unreadable", f"{path.name} is larger than {MAX_FILE_BYTES} bytes.")
    try:
        raw = parse_strict_json(content.decode("utf-8-sig"))
    except (UnicodeDecodeError, NotStrictJson) as error:
        message = f"{path.name} is no strict JSON in UTF-8: {shown(error)}."
        raise DataInvalid("template-file-unreadable", message) from error
    return read_template_set(raw)


def read_template_set(raw: Any) -> TemplateSet:
    """Read a template set from parsed JSON.

    Raises:
        DataInvalid: ``template-set-invalid`` with every fault, its code and place; see
            ``template_checks.check_template_set`` for those of the content.
    """
    faults: list[Fault] = []
    try:
        raw = parse_strict_json(json.dumps(raw, ensure_ascii=False))
    except NotStrictJson as error:
        message = f"is not strict JSON: {shown(error)}"
        faults.append(Fault(code="not-strict-json", message=message, where=_ROOT))
        raw = {}
    sections = read_section(_ROOT, raw, _RULES, faults)
    if isinstance(raw, Mapping):
        faults += [
            Fault(code="missing-key", message="is missing", where=f"{_ROOT}.{name}")
            for name in _REQUIRED
            if name not in raw
        ]
    template_set = _build(sections, raw, faults)
    faults += check_template_set(template_set, can_try=not faults)
    refuse_if_faulty(DataInvalid, "template-set-invalid", "The template set", faults)
    return template_set


def _build(sections: Mapping[str, Any], raw: Any, faults: list[Fault]) -> TemplateSet:
    noise = read_section(f"{_ROOT}.noise", sections.get("noise", {}), _NOISE_RULES, faults)
    return TemplateSet(
        name=sections.get("name", ""),
        system_prompt=sections.get("system_prompt"),
        answer_fields=sections.get("answer", ()),
        slots={
            name: tuple(_read_slot(name, slot, faults)) for name, slot in sections.get("slots", {}).items()
        },
        templates=tuple(_read_templates(sections.get("templates", ()), faults)),
        rules=tuple(_read_rules(sections.get("rules", ()), faults)),
        excluded=tuple(_read_excluded(sections.get("exclude", ()), faults)),
        noise=NoiseSettings(**noise),
        schema=_read_schema(sections.get("output_schema"), faults),
        sha256=hashlib.sha256(to_compact_json(raw).encode()).hexdigest(),
    )


def _read_slot(name: str, raw: Any, faults: list[Fault]) -> Iterator[Wording]:
    where = f"slots.{shown(name)}"
    if not _SLOT_NAME.fullmatch(name):
        message = "a slot's name needs small letters, digits and _ and begins with a letter"
        faults.append(Fault(code="slot-name-invalid", message=message, where=where))
    slot = read_section(where, raw, _SLOT_RULES, faults)
    if isinstance(raw, Mapping) and "values" not in raw:
        faults.append(Fault(code="missing-key", message="is missing", where=f"{where}.values"))
    texts: set[str] = set()
    for place, value in enumerate(slot.get("values", ())):
        wording = _read_value(value, slot.get("label"), f"{where}.values.{place}", faults)
        if wording is None:
            continue
        key = to_compact_json([wording.text, sorted(wording.labels.items())])
        if key in texts:
            message = f"the value {shown(wording.text)!r} is given twice"
            faults.append(Fault(code="duplicate-value", message=message, where=wording.where))
        texts.add(key)
        yield wording


def _read_value(raw: Any, label: str | None, where: str, faults: list[Fault]) -> Wording | None:
    document = {"text": raw} if isinstance(raw, str) else raw
    values = read_section(where, document, _WORDING_RULES, faults)
    if "text" not in values:
        if isinstance(document, Mapping) and "text" not in document:
            faults.append(Fault(code="missing-key", message="is missing", where=f"{where}.text"))
        return None
    labels = _read_labels(values.get("labels", {}), f"{where}.labels", faults)
    return read_wording(
        values["text"], labels=labels, keep=values.get("keep"), label=label, where=where, faults=faults
    )


def _read_templates(raw: list[Any], faults: list[Fault]) -> Iterator[Template]:
    seen: set[str] = set()
    for place, item in enumerate(raw):
        where = f"templates.{place}"
        template_id = item.get("id") if isinstance(item, Mapping) else None
        if isinstance(item, Mapping) and not (isinstance(template_id, str) and template_id.strip()):
            message = "id must be a text that is not empty"
            faults.append(Fault(code="id-missing", message=message, where=f"{where}.id"))
        elif template_id in seen:
            message = f"the id {shown(template_id)!r} is used twice"
            faults.append(Fault(code="duplicate-id", message=message, where=f"{where}.id"))
        rest = (
            {key: value for key, value in item.items() if key != "id"} if isinstance(item, Mapping) else None
        )
        wording = _read_value(rest, None, where, faults)
        seen.add(str(template_id))
        if wording is not None:
            yield Template(template_id=str(template_id), wording=wording)


def _read_rules(raw: list[Any], faults: list[Fault]) -> Iterator[LabelRule]:
    for place, item in enumerate(raw):
        where = f"rules.{place}"
        values = read_section(where, item, {"when": OBJECT, "then": OBJECT}, faults)
        then = _read_labels(values.get("then", {}), f"{where}.then", faults)
        if isinstance(item, Mapping) and not then:
            message = "must set at least one label"
            faults.append(Fault(code="rule-without-effect", message=message, where=f"{where}.then"))
        when = _read_condition(values.get("when", {}), f"{where}.when", faults)
        yield LabelRule(when=when, then=then, where=where)


def _read_excluded(raw: list[Any], faults: list[Fault]) -> Iterator[Mapping[str, tuple[str, ...]]]:
    for place, item in enumerate(raw):
        where = f"exclude.{place}"
        if isinstance(item, Mapping) and item:
            yield _read_condition(item, where, faults)
        else:
            message = "must be an object that is not empty"
            faults.append(Fault(code="wrong-type", message=message, where=where))


def _read_labels(raw: Mapping[str, Any], where: str, faults: list[Fault]) -> dict[str, str]:
    labels = {}
    for name, value in raw.items():
        if isinstance(value, list | Mapping):
            message = "a label's value must be a text, a number, true, false or null"
            faults.append(Fault(code="label-value-invalid", message=message, where=f"{where}.{shown(name)}"))
        else:
            labels[name] = to_compact_json(value)
    return labels


def _read_condition(raw: Mapping[str, Any], where: str, faults: list[Fault]) -> dict[str, tuple[str, ...]]:
    condition = {}
    for name, value in raw.items():
        values = value if isinstance(value, list) else [value]
        place = f"{where}.{shown(name)}"
        if not values or any(isinstance(item, list | Mapping) for item in values):
            message = "must be a label's value or a list of at least one"
            faults.append(Fault(code="label-value-invalid", message=message, where=place))
        else:
            condition[name] = tuple(to_compact_json(item) for item in values)
    return condition


def _read_schema(raw: Any, faults: list[Fault]) -> AnswerSchema | None:
    if raw is None:
        return None
    try:
        return AnswerSchema(raw)
    except ValueError as error:
        message = f"is no valid JSON Schema: {shown(error)}"
        faults.append(Fault(code="schema-invalid", message=message, where=f"{_ROOT}.output_schema"))
        return None


def _read_list(value: Any) -> list[Any]:
    if not isinstance(value, list) or not value:
        raise ValueError
    return value


def _read_plain_text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError
    return value


def _read_keep(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(item, str) and item.strip() for item in value):
        raise ValueError
    return tuple(item.strip() for item in value)


def _read_name(value: Any) -> str:
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_NAME_CHARACTERS:
        raise ValueError
    return value


_LIST: Final = Rule("a list that is not empty", _read_list)
_RULES: Final[Mapping[str, Rule]] = {
    "name": Rule(f"a text of at most {MAX_NAME_CHARACTERS} characters", _read_name),
    "system_prompt": optional(TEXT),
    "answer": NAMES,
    "slots": OBJECT,
    "templates": _LIST,
    "rules": _LIST,
    "exclude": _LIST,
    "noise": OBJECT,
    "output_schema": optional(OBJECT),
}
_SLOT_RULES: Final[Mapping[str, Rule]] = {"label": TEXT, "values": _LIST}
_WORDING_RULES: Final[Mapping[str, Rule]] = {
    "text": Rule("a text", _read_plain_text),
    "labels": OBJECT,
    "keep": Rule("a list of texts", _read_keep),
}
_NOISE_RULES: Final[Mapping[str, Rule]] = {
    "lower_case_fraction": number(0, 1),
    "drop_punctuation_fraction": number(0, 1),
    "swap_letters_fraction": number(0, 1),
}
