"""The page that estimates the memory of a training. Its address holds everything: a link shows it again."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.contrib.admin import ModelAdmin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, path, reverse

from registry.errors import Fault
from registry.selectors.base_models import list_base_models
from training.admin.memory_bars import LEFT, RIGHT, WIDTH, draw_bars
from training.admin.memory_form import (
    LABELS,
    MAX_OFFERED,
    build_fields,
    request_of_texts,
    texts_of_address,
    texts_of_run,
)
from training.engine.memory.comparison import MemoryComparison
from training.engine.memory.wording import (
    METHOD_NAMES,
    describe_answer,
    describe_fit,
    gigabytes,
    name_item,
)
from training.errors import TrainingInvalid
from training.models import TrainingRun
from training.selectors.memory import compare_memory

TEMPLATE: Final = "admin/training/memory/page.html"
PAGE: Final = "admin:training_memory_estimate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One figure of the ledger and how it comes about."""

    size: str
    how: str


def address_for_run(run: TrainingRun) -> str:
    """The address of the page for what a training run does."""
    return f"{reverse(PAGE)}?{urlencode(texts_of_run(run))}"


class MemoryPage:
    """The view, beside an admin whose rights and look it has."""

    def __init__(self, model_admin: "ModelAdmin[TrainingRun]") -> None:
        """Takes that admin."""
        self.model_admin = model_admin

    def get_urls(self) -> list[URLPattern]:
        """The page's address."""
        view = self.model_admin.admin_site.admin_view(self.show)
        return [path("memory-estimate/", view, name="training_memory_estimate")]

    def show(self, request: HttpRequest) -> HttpResponse:
        """The form, and the answer once a base model is chosen."""
        if not self.model_admin.has_view_permission(request):
            raise PermissionDenied
        base_models = list(list_base_models().order_by("name")[:MAX_OFFERED])
        texts = texts_of_address(request.GET)
        is_asked = bool(texts["base_model"])
        if not is_asked and base_models:
            texts["base_model"] = base_models[0].name
        context: dict[str, Any] = {
            **self.model_admin.admin_site.each_context(request),
            "title": "Memory estimate",
            "opts": self.model_admin.opts,
            "is_fullwidth": "1",
            "fields": build_fields(texts, base_models),
            "has_base_models": bool(base_models),
        }
        status = 200
        if is_asked:
            try:
                comparison = compare_memory(base_model=texts["base_model"], request=request_of_texts(texts))
                context |= answer_context(comparison)
            except TrainingInvalid as error:
                context["faults"], status = name_places(error.faults), 422
        return render(request, TEMPLATE, context, status=status)


def name_places(faults: Iterable[Fault]) -> list[tuple[str, Fault]]:
    """Each fault with its place in the words of the form; a place that is no field stays as it is."""
    named = []
    for fault in faults:
        place = fault.where or ""
        label = LABELS.get(place.split("/")[1], place) if place.startswith("/") else place
        named.append((label, fault))
    return named


def answer_context(comparison: MemoryComparison) -> dict[str, Any]:
    """What the template shows of an answer."""
    return {
        "comparison": comparison,
        "method_names": [METHOD_NAMES[method.method] for method in comparison.methods],
        "num_parameters": f"{comparison.shape.num_parameters:,}",
        "ledger": _build_ledger(comparison),
        "totals": [
            gigabytes(method.estimate.low_bytes, method.estimate.high_bytes) for method in comparison.methods
        ],
        "answers": [
            {
                "card": answer.card.label,
                "fits": [
                    (
                        METHOD_NAMES[method.method],
                        method.fits[number].fit.value,
                        describe_fit(method.fits[number]),
                    )
                    for method in comparison.methods
                ],
                "answer": answer,
                "sentence": describe_answer(answer),
                "changes": [
                    (change.what, gigabytes(change.high_bytes, change.high_bytes), change.fits)
                    for change in answer.changes
                ],
            }
            for number, answer in enumerate(comparison.cards)
        ],
        "chart": draw_bars(comparison),
        "chart_size": {"width": WIDTH, "left": LEFT, "right": RIGHT},
    }


def _build_ledger(comparison: MemoryComparison) -> list[tuple[str, str, list[Cell | None]]]:
    """Name, words and a cell for each method, in the order in which the items stand in the ledgers."""
    by_method = [{line.name: line for line in method.estimate.lines} for method in comparison.methods]
    # Full fine-tuning has no frozen weights and ends with the margin, so the items come from both ends.
    names = dict.fromkeys(
        line.name for method in reversed(comparison.methods) for line in method.estimate.lines
    )
    rows: list[tuple[str, str, list[Cell | None]]] = []
    for name in names:
        found = [lines.get(name) for lines in by_method]
        cells = [
            Cell(size=gigabytes(line.low_bytes, line.high_bytes), how=line.how) if line else None
            for line in found
        ]
        rows.append((name, name_item(name), cells))
    return rows
