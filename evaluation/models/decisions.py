"""Policies and the decisions made by them."""

import uuid

from django.conf import settings
from django.db import models

from evaluation.choices import Verdict
from evaluation.models.runs import EvaluationRun
from registry.models.fields import Recorded, name_field, sha256_field


class Policy(Recorded):
    """One immutable version of a set of rules."""

    name = name_field()
    number = models.PositiveIntegerField()
    definition = models.JSONField()
    digest = sha256_field()

    class Meta:
        verbose_name_plural = "policies"
        ordering = ("name", "-number")
        constraints = (models.UniqueConstraint(fields=("name", "number"), name="policy_number_unique"),)

    def __str__(self) -> str:
        return f"{self.name}@{self.number}"


class Decision(models.Model):
    """The verdict of a policy on a run, with each rule's result; never altered.

    `evidence_digest` covers everything the rules read, so the decision can be recomputed and compared.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    run = models.OneToOneField(EvaluationRun, on_delete=models.PROTECT, related_name="decision")
    policy = models.ForeignKey(Policy, on_delete=models.PROTECT, related_name="decisions")
    verdict = models.CharField(max_length=16, choices=Verdict.choices)
    rules = models.JSONField()
    summary = models.TextField()
    evidence_digest = sha256_field()
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"{self.verdict} ({self.run_id})"


class Override(Recorded):
    """A person's request to set a decision aside, valid once a second person has confirmed it."""

    decision = models.ForeignKey(Decision, on_delete=models.PROTECT, related_name="overrides")
    reason = models.TextField()
    confirmed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.PROTECT, related_name="+"
    )
    confirmed_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"override of {self.decision_id}"
