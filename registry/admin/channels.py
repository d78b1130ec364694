"""Channels with their history, and the way back. Promotion starts from an evaluation's report page."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from unfold.decorators import action
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from registry.admin.base import ReadOnlyAdmin, ReadOnlyInline, actor_of, short_digest
from registry.choices import TokenScope
from registry.errors import AssayError
from registry.models import Channel, Promotion
from registry.selectors.channels import find_rollback_target, list_promotions
from registry.services.channels import create_channel, rollback_channel

MAX_TARGETS = 50


class RollbackForm(forms.Form):
    """Which promotion to go back to, and why. `revision` is the channel as the person saw it."""

    revision = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    to_promotion = forms.TypedChoiceField(coerce=int, label="Go back to", widget=UnfoldAdminSelectWidget)
    reason = forms.CharField(max_length=2000, widget=UnfoldAdminTextareaWidget)

    def __init__(self, channel: Channel, *args: Any, **kwargs: Any) -> None:
        """Takes the channel whose promotions are offered."""
        super().__init__(*args, **kwargs)
        promotions = list_promotions(channel).filter(restores=None)
        if channel.current is not None:
            served = channel.current.restores or channel.current
            promotions = promotions.exclude(pk=served.pk)
        field = self.fields["to_promotion"]
        if isinstance(field, forms.ChoiceField):
            field.choices = [
                (row.pk, f"{row.version} promoted at {row.created_at:%Y-%m-%d %H:%M} UTC (#{row.revision})")
                for row in promotions[:MAX_TARGETS]
            ]


class PromotionInline(ReadOnlyInline):
    """The history of a channel."""

    model = Promotion
    fk_name = "channel"
    fields = (
        "revision",
        "kind",
        "version",
        "verdict",
        "reason",
        "override_reason",
        "created_at",
        "created_by",
    )
    readonly_fields = fields
    ordering = ("-revision",)
    show_change_link = True


@admin.register(Channel)
class ChannelAdmin(ReadOnlyAdmin):
    """Channels. One can be added; what it serves changes by promotion and rollback only."""

    list_display = ("name", "form", "serves", "revision", "created_at")
    list_filter = ("form",)
    search_fields = ("name",)
    ordering = ("name",)
    fields = ("name", "form", "serves", "revision", "created_at", "created_by")
    readonly_fields = ("serves", "revision", "created_at", "created_by")
    inlines = (PromotionInline,)
    list_select_related = ("current__version__adapter",)
    actions_detail = ("rollback",)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Admins."""
        return actor_of(request).has_scope(TokenScope.ADMIN)

    def get_fields(self, request: HttpRequest, obj: Channel | None = None) -> Any:
        """Name and form for a new channel, everything for one that is there."""
        return self.fields if obj is not None else ("name", "form")

    def get_inlines(self, request: HttpRequest, obj: Channel | None = None) -> Any:
        """The history, once there is a channel."""
        return self.inlines if obj is not None else ()

    def has_rollback_permission(self, request: HttpRequest, object_id: Any = None) -> bool:
        """Whoever may promote."""
        return actor_of(request).has_scope(TokenScope.PROMOTE)

    @admin.display(description="serves")
    def serves(self, channel: Channel) -> str:
        """The version that the channel serves."""
        return "nothing yet" if channel.current is None else str(channel.current.version)

    def save_model(self, request: HttpRequest, obj: Channel, form: Any, change: bool) -> None:
        """Adds a channel by the service."""
        channel, _ = create_channel(name=obj.name, form=obj.form, actor=actor_of(request))
        obj.pk = channel.pk
        obj.refresh_from_db()

    @action(description="Roll back", url_path="rollback", permissions=["rollback"], icon="history")
    def rollback(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Asks where to go back to and why, and does it."""
        channel = self.get_object(request, object_id)
        if channel is None:
            raise Http404
        page = reverse("admin:registry_channel_change", args=(channel.pk,))
        target = find_rollback_target(channel)
        if target is None:
            messages.warning(request, f"Channel {channel.name} has no earlier promotion to go back to.")
            return redirect(page)
        initial = {"revision": channel.revision, "to_promotion": target.pk}
        form = RollbackForm(channel, request.POST or None, initial=initial)
        if request.method == "POST" and form.is_valid() and self._roll_back(request, channel, form):
            return redirect(page)
        context = {
            **self.admin_site.each_context(request),
            "title": f"Roll back {channel.name}",
            "channel": channel,
            "form": form,
            "opts": self.opts,
            "page": page,
        }
        return render(request, "admin/registry/channel/rollback.html", context)

    def _roll_back(self, request: HttpRequest, channel: Channel, form: RollbackForm) -> bool:
        values = form.cleaned_data
        try:
            changed = rollback_channel(
                channel_name=channel.name,
                expected_revision=values["revision"],
                reason=values["reason"],
                to_promotion=values["to_promotion"],
                actor=actor_of(request),
            )
        except AssayError as error:
            form.add_error(None, error.detail)
            return False
        served = "nothing" if changed.current is None else str(changed.current.version)
        messages.success(request, f"Channel {channel.name} serves {served} again.")
        return True


@admin.register(Promotion)
class PromotionAdmin(ReadOnlyAdmin):
    """The history of all channels."""

    list_display = ("channel", "revision", "kind", "version", "verdict", "digest", "created_at", "created_by")
    list_filter = ("channel", "kind", "verdict")
    search_fields = ("channel__name", "version__adapter__name", "reason", "artifact__digest")
    ordering = ("-created_at",)
    list_select_related = ("channel", "version__adapter", "created_by")

    @admin.display(description="artifact")
    def digest(self, promotion: Promotion) -> str:
        """The beginning of the digest of what ships."""
        return short_digest(promotion.artifact_id)
