"""Who may do what, and the record of what was done."""

from django.conf import settings
from django.db import models

from registry.choices import TokenScope
from registry.models.adapters import Adapter
from registry.models.fields import Recorded, sha256_field


class ApiToken(Recorded):
    """A bearer token. Only the sha256 of its secret is kept; `prefix` finds the row.

    An empty `adapters` means every adapter. `expires_at` null means it does not expire.
    """

    name = models.CharField(max_length=96)
    prefix = models.CharField(max_length=16, unique=True)
    secret_sha256 = sha256_field()
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    scopes = models.JSONField(default=list, help_text=f"Any of: {', '.join(TokenScope.values)}.")
    adapters = models.ManyToManyField(Adapter, blank=True, related_name="+")
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix})"


class AuditEvent(models.Model):
    """One change of state, never altered. `actor` is a user name, `token:<prefix>` or `system`."""

    at = models.DateTimeField(auto_now_add=True)
    actor = models.CharField(max_length=160)
    action = models.CharField(max_length=64)
    object_type = models.CharField(max_length=48)
    object_id = models.CharField(max_length=96)
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    reason = models.TextField(blank=True, default="")

    class Meta:
        ordering = ("-id",)
        indexes = (models.Index(fields=("object_type", "object_id")),)

    def __str__(self) -> str:
        return f"{self.action} {self.object_type} {self.object_id}"


class IdempotencyRecord(models.Model):
    """The answer given to a POST with an `Idempotency-Key`, given again when the request is repeated."""

    owner = models.CharField(max_length=160)
    key = models.CharField(max_length=128)
    request_sha256 = sha256_field()
    status = models.PositiveSmallIntegerField(null=True, blank=True)
    body = models.JSONField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("owner", "key"), name="idempotency_key_unique"),)

    def __str__(self) -> str:
        return self.key
