"""Channels and the append-only history of what they served."""

from django.db import models

from registry.choices import PromotionKind, ServingForm
from registry.models.adapters import AdapterVersion
from registry.models.artifacts import Artifact
from registry.models.fields import Recorded, name_field


class Channel(Recorded):
    """A place that serving pulls from. `revision` is its ETag: every change raises it by compare-and-set."""

    name = name_field(unique=True)
    form = models.CharField(max_length=16, choices=ServingForm.choices, default=ServingForm.MERGED)
    revision = models.PositiveIntegerField(default=0)
    current = models.ForeignKey(
        "registry.Promotion", null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )

    def __str__(self) -> str:
        return self.name


class Promotion(Recorded):
    """One change of a channel; never altered afterwards.

    `restores` is set for a rollback only: the promotion (never itself a rollback) whose version and bytes
    came back. `decision_id` names the decision of the evaluation app that allowed it, `artifact` the bytes
    that ship. `override_reason` is empty unless a person set the rules aside.
    """

    channel = models.ForeignKey(Channel, on_delete=models.PROTECT, related_name="promotions")
    kind = models.CharField(max_length=16, choices=PromotionKind.choices)
    revision = models.PositiveIntegerField()
    version = models.ForeignKey(AdapterVersion, on_delete=models.PROTECT, related_name="promotions")
    artifact = models.ForeignKey(Artifact, on_delete=models.PROTECT, related_name="+")
    previous = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    restores = models.ForeignKey("self", null=True, blank=True, on_delete=models.PROTECT, related_name="+")
    decision_id = models.UUIDField(null=True, blank=True)
    verdict = models.CharField(max_length=16)
    reason = models.TextField()
    override_reason = models.TextField(blank=True, default="")

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(fields=("channel", "revision"), name="promotion_revision_unique"),
        )

    def __str__(self) -> str:
        return f"{self.channel.name}#{self.revision}"
