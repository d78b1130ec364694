"""Tokens, the audit log and the answers kept for repeated requests."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget

from registry.admin.base import AdminOnlyAdmin, actor_of
from registry.choices import TokenScope
from registry.models import ApiToken, AuditEvent, IdempotencyRecord
from registry.services.tokens import create_token, revoke_token


class TokenForm(forms.ModelForm):  # type: ignore[type-arg]  # generic in the stubs only
    """What a new token may do."""

    scopes = forms.MultipleChoiceField(
        choices=TokenScope.choices, widget=UnfoldAdminCheckboxSelectMultipleWidget
    )

    class Meta:
        model = ApiToken
        fields = ("name", "user", "scopes", "adapters", "expires_at")

    def clean_expires_at(self) -> Any:
        """The expiry, which must lie ahead."""
        value = self.cleaned_data["expires_at"]
        if value is not None and value <= timezone.now():
            raise forms.ValidationError("The expiry lies in the past.")
        return value


@admin.register(ApiToken)
class ApiTokenAdmin(AdminOnlyAdmin):
    """API tokens: made here, shown once, revoked; never changed or deleted, since history names them."""

    list_display = ("name", "prefix", "user", "shown_scopes", "expires_at", "revoked_at", "last_used_at")
    list_filter = ("user",)
    search_fields = ("name", "prefix", "user__username")
    ordering = ("-created_at",)
    list_select_related = ("user",)
    form = TokenForm
    exclude = ("secret_sha256",)
    actions = ("revoke_tokens",)

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Admins."""
        return actor_of(request).has_scope(TokenScope.ADMIN)

    def get_fields(self, request: HttpRequest, obj: ApiToken | None = None) -> Any:
        """What is asked for a new token, or all but the secret's hash for one that is there."""
        asked = ("name", "user", "scopes", "adapters", "expires_at")
        if obj is None:
            return asked
        return (*asked, "prefix", "revoked_at", "last_used_at", "created_at", "created_by")

    @admin.display(description="scopes")
    def shown_scopes(self, token: ApiToken) -> str:
        """The scopes in one line."""
        return ", ".join(token.scopes)

    def save_model(self, request: HttpRequest, obj: ApiToken, form: Any, change: bool) -> None:
        """Makes the token by the service and shows its text this one time."""
        values = form.cleaned_data
        issued = create_token(
            user=values["user"],
            name=values["name"],
            scopes=values["scopes"],
            adapter_names=[adapter.name for adapter in values["adapters"]],
            expires_at=values["expires_at"],
            actor=actor_of(request),
        )
        obj.pk = issued.token.pk
        obj.refresh_from_db()
        messages.warning(request, f"Copy the token now, it is not shown again: {issued.text}")

    @admin.action(description="Revoke the chosen tokens")
    def revoke_tokens(self, request: HttpRequest, queryset: QuerySet[ApiToken]) -> None:
        """Ends tokens at once."""
        for token in queryset:
            revoke_token(token=token, actor=actor_of(request), reason="revoked in the admin")
        messages.success(request, f"{len(queryset)} tokens are revoked.")


@admin.register(AuditEvent)
class AuditEventAdmin(AdminOnlyAdmin):
    """The audit log."""

    list_display = ("at", "actor", "action", "object_type", "object_id", "reason")
    list_filter = ("action", "object_type")
    search_fields = ("actor", "object_id", "reason")
    ordering = ("-id",)


@admin.register(IdempotencyRecord)
class IdempotencyRecordAdmin(AdminOnlyAdmin):
    """Answers kept for repeated requests."""

    list_display = ("key", "owner", "status", "created_at")
    search_fields = ("key", "owner")
    ordering = ("-created_at",)
