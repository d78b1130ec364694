"""What a template set must fulfil beyond its form: every fault, with code, place and remedy."""

from collections.abc import Iterable, Iterator, Mapping

from registry.artifacts.findings import shown, shown_list
from training.engine.data.making.label_space import LabelSpace
from training.engine.data.making.template_set import Labels, TemplateSet, Wording
from training.engine.errors import Fault

MAX_SLOTS = 200
"""Slots may hold slots; more of them than this would also be beyond any person's overview."""

_BREAKING = frozenset({"too-many-slots", "unknown-slot", "slot-cycle"})


def check_template_set(template_set: TemplateSet, *, can_try: bool) -> list[Fault]:
    """Return what is wrong with the content of a template set.

    Slots: ``too-many-slots``, ``unknown-slot``, ``slot-cycle``, ``unreachable-slot`` (no template uses it),
    ``template-without-slots``. Labels: ``label-without-value`` (needed and stated nowhere),
    ``unknown-label-value`` (a rule or exclusion asks for a value that does not occur), ``label-set-twice``
    (by texts and by a rule), ``label-uneven`` (some values of a slot state it, others do not),
    ``label-not-stated`` (a template does not). Trials: ``no-combination``, ``unreachable-value`` and
    ``unreachable-template`` (no possible combination uses it), ``label-undetermined`` (no rule fits),
    ``answer-not-in-schema``.

    Args:
        template_set: As it was read.
        can_try: Whether its form is sound; only then are combinations tried, and only when nothing else is
            wrong here.
    """
    faults = [*_check_references(template_set), *_check_label_names(template_set)]
    if any(fault.code in _BREAKING for fault in faults):
        return faults
    space = LabelSpace(template_set)
    faults += [*_check_evenness(space), *_check_templates(space)]
    if can_try and not faults:
        faults += _try_combinations(space) if space.is_enumerable else _try_some(space)
    return faults


def _check_references(template_set: TemplateSet) -> Iterator[Fault]:
    slots = template_set.slots
    if len(slots) > MAX_SLOTS:
        message = f"{len(slots)} slots; at most {MAX_SLOTS} are read"
        yield Fault(code="too-many-slots", message=message, where="template_set.slots")
        return
    templates = [template.wording for template in template_set.templates]
    for wording in [*templates, *(value for values in slots.values() for value in values)]:
        for name in wording.slots:
            if name not in slots:
                message = f"the slot {shown(name)!r} is not declared"
                yield Fault(code="unknown-slot", message=message, where=wording.where)
    for wording in templates:
        if not wording.slots:
            message = "the template has no slot, so it gives one text only"
            yield Fault(code="template-without-slots", message=message, where=wording.where)
    for name in slots:
        if name in _reach(template_set, (value for value in slots[name])):
            message = "the slot holds itself"
            yield Fault(code="slot-cycle", message=message, where=f"slots.{shown(name)}")
    reached = _reach(template_set, templates)
    for name in slots:
        if name not in reached:
            message = "no template uses the slot"
            remedy = "Use it in a template, or remove it."
            yield Fault(code="unreachable-slot", message=message, where=f"slots.{shown(name)}", remedy=remedy)


def _reach(template_set: TemplateSet, wordings: Iterable[Wording]) -> set[str]:
    """Return the slots that stand in wordings or, level by level, in the values of those."""
    reached: set[str] = set()
    waiting = [name for wording in wordings for name in wording.slots]
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            values = template_set.slots.get(name, ())
            waiting += [nested for value in values for nested in value.slots]
    return reached


def _check_label_names(template_set: TemplateSet) -> Iterator[Fault]:
    stated = template_set.domains()
    known: dict[str, set[str]] = {name: set(values) for name, values in stated.items()}
    for rule in template_set.rules:
        for name, value in rule.then.items():
            known.setdefault(name, set()).add(value)
            if name in stated:
                message = f"sets the label {shown(name)!r}, which texts state already"
                yield Fault(code="label-set-twice", message=message, where=f"{rule.where}.then")
    for name in template_set.answer_fields:
        if name not in known:
            yield _label_without_value(name, "template_set.answer")
    conditions = [(f"{rule.where}.when", rule.when) for rule in template_set.rules]
    conditions += [(f"exclude.{place}", item) for place, item in enumerate(template_set.excluded)]
    for where, condition in conditions:
        for name, values in condition.items():
            if name not in known:
                yield _label_without_value(name, where)
                continue
            missing = [value for value in values if value not in known[name]]
            if missing:
                message = f"the label {shown(name)!r} never has the value {shown_list(missing)}"
                remedy = f"It has {shown_list(sorted(known[name]))}."
                yield Fault(code="unknown-label-value", message=message, where=where, remedy=remedy)


def _label_without_value(name: str, where: str) -> Fault:
    message = f"no text states the label {shown(name)!r} and no rule sets it"
    return Fault(code="label-without-value", message=message, where=where)


def _check_evenness(space: LabelSpace) -> Iterator[Fault]:
    for name, values in space.template_set.slots.items():
        for value in values:
            missing = sorted(space.carried[name] - space.carried_by(value))
            if missing:
                message = f"does not state {shown_list(missing)}, which other values of the slot do"
                remedy = 'Add the label; for words that say nothing of it, with "keep": [].'
                yield Fault(code="label-uneven", message=message, where=value.where, remedy=remedy)


def _check_templates(space: LabelSpace) -> Iterator[Fault]:
    template_set = space.template_set
    needed = {*template_set.answer_fields, *(name for rule in template_set.rules for name in rule.when)}
    needed &= space.domains.keys()
    for template in template_set.templates:
        missing = sorted(needed - space.carried_by(template.wording))
        if missing:
            message = f"the template does not state {shown_list(missing)}"
            remedy = 'Add a slot that does, or "labels" to the template where its silence says it.'
            where = template.wording.where
            yield Fault(code="label-not-stated", message=message, where=where, remedy=remedy)


def _try_combinations(space: LabelSpace) -> list[Fault]:
    problems: dict[str, Labels] = {}
    used: set[str] = set()
    for labels in space.combinations():
        problem = space.find_problem(labels)
        if problem:
            problems.setdefault(problem, labels)
            continue
        for template in space.templates_for(labels):
            used.add(template.wording.where)
            for slot in _reach(space.template_set, [template.wording]):
                used.update(value.where for value in space.options(slot, labels))
    if not used and not problems.keys() & _ANSWER_PROBLEMS.keys():
        message = "no combination of labels can be stated by any template"
        return [Fault(code="no-combination", message=message, where="template_set.templates")]
    faults = _describe_problems(problems)
    return faults or list(_find_unused(space.template_set, used))


def _try_some(space: LabelSpace) -> list[Fault]:
    """Try every value of every label at least once; too many combinations for more."""
    problems: dict[str, Labels] = {}
    for place in range(max(len(values) for values in space.domains.values())):
        labels = {name: values[place % len(values)] for name, values in space.domains.items()}
        problems.setdefault(space.find_problem(labels), labels)
    return _describe_problems(problems)


_ANSWER_PROBLEMS: Mapping[str, str] = {
    "label-undetermined": "no rule sets every field of the answer for",
    "answer-not-in-schema": "the answer does not fulfil output_schema for",
}


def _describe_problems(problems: Mapping[str, Labels]) -> list[Fault]:
    faults = []
    for code, message in _ANSWER_PROBLEMS.items():
        if code in problems:
            labels = ", ".join(f"{name} {value}" for name, value in problems[code].items())
            where = "template_set.rules" if code == "label-undetermined" else "template_set.output_schema"
            faults.append(Fault(code=code, message=f"{message} {shown(labels)}", where=where))
    return faults


def _find_unused(template_set: TemplateSet, used: set[str]) -> Iterator[Fault]:
    remedy = "Exclude less, correct its labels, or remove it."
    for template in template_set.templates:
        if template.wording.where not in used:
            message = "no possible combination of labels uses the template"
            where = template.wording.where
            yield Fault(code="unreachable-template", message=message, where=where, remedy=remedy)
    for values in template_set.slots.values():
        for value in values:
            if value.where not in used:
                message = "no possible combination of labels uses the value"
                yield Fault(code="unreachable-value", message=message, where=value.where, remedy=remedy)
