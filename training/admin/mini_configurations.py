"""The settings of the minimal reproducible experiment (MISSION D6), which people change here."""

import json
from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextareaWidget

from registry.admin.base import ReadOnlyAdmin, actor_of
from registry.choices import TokenScope
from training.engine.config import TrainingConfig
from training.engine.errors import ConfigInvalid
from training.models import MiniConfiguration
from training.selectors.mini_configurations import get_mini_overlay
from training.services.mini_configurations import store_mini_configuration


class IndentedJsonField(forms.JSONField):
    """JSON that people edit: one setting a line."""

    def prepare_value(self, value: Any) -> Any:
        """The text in the field; what was typed comes back as it is."""
        return value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)


class MiniConfigurationForm(forms.ModelForm):  # type: ignore[type-arg]  # no generic at run time
    """The settings as JSON, with every fault at once."""

    overlay = IndentedJsonField(
        label="Settings",
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 16}),
        help_text="Sections and settings as in a training configuration. They take the place of those of the "
        "configuration that is tried; all others stay.",
    )

    class Meta:
        model = MiniConfiguration
        fields = ("overlay",)

    def clean_overlay(self) -> dict[str, Any]:
        """The settings, when a training configuration may hold them."""
        overlay = self.cleaned_data["overlay"]
        if not isinstance(overlay, dict):
            raise forms.ValidationError("An object is expected.")
        try:
            TrainingConfig.from_json(overlay)
        except ConfigInvalid as error:
            raise forms.ValidationError(
                [f"{fault.where}: {fault.message}" for fault in error.faults]
            ) from error
        return overlay


@admin.register(MiniConfiguration)
class MiniConfigurationAdmin(ReadOnlyAdmin):
    """All settings there ever were, the active ones marked; a change is a new row."""

    form = MiniConfigurationForm
    list_display = ("__str__", "is_active", "created_by", "shown_overlay")
    list_filter = ("is_active",)
    ordering = ("-created_at",)
    list_select_related = ("created_by",)

    @admin.display(description="settings")
    def shown_overlay(self, row: MiniConfiguration) -> str:
        """The settings on one line."""
        return json.dumps(row.overlay, ensure_ascii=False)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Whoever may begin trainings."""
        return actor_of(request).has_scope(TokenScope.SUBMIT)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """The settings alone for a new row."""
        return ("overlay",) if obj is None else ("overlay", "is_active", "created_by", "created_at")

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """What holds at the moment."""
        return {"overlay": dict(get_mini_overlay())}

    def save_model(self, request: HttpRequest, obj: MiniConfiguration, form: Any, change: bool) -> None:
        """Stores the settings through the service, which makes them the active ones."""
        row = store_mini_configuration(overlay=form.cleaned_data["overlay"], actor=actor_of(request))
        obj.pk, obj.created_at, obj.is_active = row.pk, row.created_at, row.is_active
