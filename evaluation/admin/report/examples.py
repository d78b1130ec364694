"""The list of examples of a report: what a reviewer filters by, and each example with its outputs side by
side.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django import forms
from django.core.paginator import Page, Paginator
from django.db.models import Q, QuerySet
from django.http import QueryDict
from django.utils.safestring import SafeString

from evaluation.admin.report.differences import Comparison, compare_outputs
from evaluation.models import EvaluationRun, ExampleResult
from evaluation.selectors.runs import list_examples
from registry.choices import EVALUATION_ROLES
from registry.visible_text import visible_text

PAGE_SIZE: Final = 10
MAX_SEARCH_CHARACTERS: Final = 200
_OUTCOMES: Final = (("failed", "Failed"), ("passed", "Passed"), ("unscored", "Not scored"))
_FORM_LABELS: Final[Mapping[str, str]] = {"base": "Base", "adapter": "Adapter", "merged": "Merged"}
_BEHAVIOUR_LABELS: Final[Mapping[str, str]] = {
    "never_stopped": "never stopped",
    "template_residue": "template residue",
    "repetition": "repetition",
    "preamble": "preamble",
}


class ExampleFilterForm(forms.Form):
    """What the list can be narrowed by; a value that is not offered is as good as none."""

    outcome = forms.ChoiceField(required=False, choices=[("", "All outcomes"), *_OUTCOMES])
    role = forms.ChoiceField(
        required=False, choices=[("", "All sets"), *((role, role) for role in EVALUATION_ROLES)]
    )
    dimension = forms.ChoiceField(required=False)
    form = forms.ChoiceField(required=False)
    q = forms.CharField(
        required=False, max_length=MAX_SEARCH_CHARACTERS, widget=forms.TextInput(attrs={"type": "search"})
    )
    rule = forms.CharField(required=False, max_length=100)
    part = forms.CharField(required=False, max_length=200)

    def __init__(self, data: QueryDict, run: EvaluationRun) -> None:
        """Offers the dimensions and forms that the run has."""
        super().__init__(data)
        rows = ExampleResult.objects.filter(run=run)
        dimensions = rows.exclude(dimension="").order_by("dimension").values_list("dimension", flat=True)
        present = sorted(set(rows.order_by().values_list("form", flat=True).distinct()))
        self.fields["dimension"] = forms.ChoiceField(
            required=False,
            choices=[("", "All dimensions"), *((name, name) for name in dimensions.distinct())],
        )
        self.fields["form"] = forms.ChoiceField(
            required=False, choices=[("", "Shipping form"), *((name, name) for name in present)]
        )

    def values(self) -> dict[str, str]:
        """The filters that are set; faulty ones are left out."""
        self.full_clean()
        return {name: value for name, value in self.cleaned_data.items() if value}


@dataclass(frozen=True, slots=True, kw_only=True)
class InputMessage:
    """One message of the input."""

    role: str
    text: SafeString


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputColumn:
    """One output of an example, or its reference.

    Attributes:
        label: Heading.
        comparison: The text, marked; None when there is no such output.
        is_judged: Whether this is the output that the verdict rests on.
        outcome: "passed", "failed" or "" when not scored.
        score: The score as text, or "".
        badges: What is remarkable about the output.
    """

    label: str
    comparison: Comparison | None
    is_judged: bool = False
    outcome: str = ""
    score: str = ""
    badges: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleCard:
    """One example with everything that is shown of it."""

    example_id: SafeString
    anchor: str
    role: str
    dimension: str
    labels: tuple[str, ...]
    outcome: str
    messages: tuple[InputMessage, ...]
    columns: tuple[OutputColumn, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExamplePage:
    """One page of the list.

    Attributes:
        cards: The examples.
        page: Django's page, for the links to others.
        query: The filters as a query string, without the page.
        narrowed_by: The rule (and part) whose examples are shown, or "".
    """

    cards: tuple[ExampleCard, ...]
    page: "Page[ExampleResult]"
    query: str
    narrowed_by: str


def build_example_page(
    run: EvaluationRun, form: ExampleFilterForm, page_number: str, rules: Sequence[Mapping[str, Any]]
) -> ExamplePage:
    """The page of examples that the filters select.

    Args:
        run: The run.
        form: The filters.
        page_number: As in the address; anything that is no page is the nearest one.
        rules: The decision's rules, for the filter by rule.
    """
    values = form.values()
    rows = _filtered(run, values, rules)
    page = Paginator(rows, PAGE_SIZE).get_page(page_number)
    query = QueryDict(mutable=True)
    query.update(values)
    return ExamplePage(
        cards=tuple(_build_cards(run, list(page.object_list))),
        page=page,
        query=query.urlencode(),
        narrowed_by=" / ".join(values[name] for name in ("rule", "part") if name in values),
    )


def deciding_example_ids(rules: Sequence[Mapping[str, Any]], rule: str, part: str) -> list[str]:
    """The examples that a rule, or one part of it, names as deciding; empty for an unknown name."""
    for result in rules:
        if result.get("rule") != rule:
            continue
        if not part:
            return list(result.get("example_ids") or ())
        for item in result.get("parts") or ():
            if item.get("name") == part:
                return list(item.get("example_ids") or ())
    return []


def _filtered(
    run: EvaluationRun, values: Mapping[str, str], rules: Sequence[Mapping[str, Any]]
) -> QuerySet[ExampleResult]:
    rows = list_examples(run).filter(form=values.get("form", run.form))
    if "role" in values:
        rows = rows.filter(role=values["role"])
    if "dimension" in values:
        rows = rows.filter(dimension=values["dimension"])
    if "outcome" in values:
        rows = rows.filter(is_passed={"failed": False, "passed": True}.get(values["outcome"]))
    if "rule" in values:
        ids = deciding_example_ids(rules, values["rule"], values.get("part", ""))
        rows = rows.filter(example_id__in=ids)
    if "q" in values:
        text = values["q"]
        found = Q(example_id__icontains=text) | Q(prompt__icontains=text) | Q(output__icontains=text)
        rows = rows.filter(found | Q(reference__icontains=text))
    return rows


def _build_cards(run: EvaluationRun, rows: Sequence[ExampleResult]) -> Iterable[ExampleCard]:
    siblings = _siblings(run, rows)
    for row in rows:
        yield _build_card(run, row, siblings)


_Siblings = Mapping[tuple[str, str, str], ExampleResult]


def _siblings(run: EvaluationRun, rows: Sequence[ExampleResult]) -> _Siblings:
    """The rows of the same examples in every form, the baseline's among them, by (role, example id, form)."""
    run_ids = [run.pk] if run.baseline_id is None else [run.pk, run.baseline_id]
    ids = [row.example_id for row in rows]
    found = ExampleResult.objects.filter(run_id__in=run_ids, example_id__in=ids)
    return {(row.role, row.example_id, row.form): row for row in found}


def _build_card(run: EvaluationRun, row: ExampleResult, siblings: _Siblings) -> ExampleCard:
    forms_shown = ("base",) if run.baseline_id is None else ("base", "adapter", "merged")
    outputs = {form: siblings.get((row.role, row.example_id, form)) for form in forms_shown}
    judged = outputs.get(run.form) or row
    # A canary may have no reference; then its outputs are compared with the one that would ship.
    anchor = row.reference if row.reference is not None else judged.output
    columns = [_reference_column(row)]
    columns += [
        _output_column(form, output, anchor, run.form)
        for form, output in outputs.items()
        # Only canaries run in both forms; an empty column would take room from the others.
        if output is not None or form == run.form
    ]
    return ExampleCard(
        example_id=visible_text(row.example_id),
        anchor=f"example-{row.position}",
        role=row.role,
        dimension=row.dimension,
        labels=tuple(_labels(row)),
        outcome=_outcome(row),
        messages=tuple(_messages(row.details.get("messages"))),
        columns=tuple(columns),
    )


def _reference_column(row: ExampleResult) -> OutputColumn:
    comparison = None if row.reference is None else compare_outputs(row.reference, None)
    return OutputColumn(label="Reference", comparison=comparison)


def _output_column(form: str, row: ExampleResult | None, anchor: str, judged_form: str) -> OutputColumn:
    label = _FORM_LABELS.get(form, form)
    if row is None:
        return OutputColumn(label=label, comparison=None, is_judged=form == judged_form)
    return OutputColumn(
        label=label,
        comparison=compare_outputs(row.output, anchor, row.details.get("fields") or None),
        is_judged=form == judged_form,
        outcome=_outcome(row),
        score="" if row.score is None else f"{row.score:.2f}",
        badges=tuple(_badges(row)),
    )


def _outcome(row: ExampleResult) -> str:
    if row.is_passed is None:
        return ""
    return "passed" if row.is_passed else "failed"


def _labels(row: ExampleResult) -> Iterable[str]:
    if row.category:
        yield row.category
    tags = row.details.get("tags")
    if isinstance(tags, Mapping):
        yield from (f"{name}: {value}" for name, value in tags.items())


def _badges(row: ExampleResult) -> Iterable[str]:
    details = row.details
    if row.parse in ("lenient", "unparsed") and row.role != "regression":
        yield "not strict JSON"
    elif details.get("schema_valid") is False:
        yield "schema invalid"
    behaviour = details.get("behaviour") or {}
    yield from (label for key, label in _BEHAVIOUR_LABELS.items() if behaviour.get(key))
    extra = details.get("details") or {}
    if "refused" in extra:
        yield "refused: over the context"
    agreement = (extra.get("parity") or {}).get("agreement")
    if agreement in ("near_tie", "diverged"):
        yield agreement.replace("_", " ")


def _messages(messages: Any) -> Iterable[InputMessage]:
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, Mapping):
            yield InputMessage(
                role=str(message.get("role", "")), text=visible_text(str(message.get("content", "")))
            )
