"""Channels: what serving pulls. Every change is a compare-and-set on `revision` and a row of the history."""

from uuid import UUID

from django.db import IntegrityError, transaction

from registry.artifacts.findings import shown
from registry.choices import VERDICT_STATES, PromotionKind, ServingForm, TokenScope, VersionState
from registry.errors import ConflictError, Fault, NotFoundError, PreconditionFailed, ValidationFailed
from registry.models import AdapterVersion, Artifact, Channel, Promotion
from registry.selectors.channels import channel_etag, find_rollback_target, get_channel
from registry.services.actors import Actor
from registry.services.audit import record_audit
from registry.services.names import require_name


def create_channel(*, name: str, form: str, actor: Actor) -> tuple[Channel, bool]:
    """Makes a channel; the same name and form again return the one that is there.

    Args:
        name: For example `staging`.
        form: A `ServingForm`; fixed for the life of the channel.
        actor: Needs the scope `admin`.

    Returns:
        The channel, and whether it is new.

    Raises:
        ConflictError: it exists with another form.
    """
    actor.require(TokenScope.ADMIN)
    require_name(name)
    form = ServingForm(form).value
    try:
        with transaction.atomic():
            channel = Channel.objects.create(name=name, form=form, created_by=actor.user)
            record_audit(
                actor=actor, action="channel.create", target=channel, after={"name": name, "form": form}
            )
    except IntegrityError as error:
        channel = get_channel(name)
        if channel.form != form:
            raise ConflictError("channel-name-taken", name=name, form=channel.form) from error
        return channel, False
    return channel, True


def promote_version(
    *,
    channel_name: str,
    version: AdapterVersion,
    decision_id: UUID | None,
    verdict: str,
    expected_revision: int,
    reason: str,
    actor: Actor,
    override_reason: str = "",
) -> Channel:
    """Makes a channel serve a version. The caller (the evaluation app) has looked the decision up.

    Args:
        channel_name: The channel.
        version: An adapter version that was judged.
        decision_id: The decision behind it.
        verdict: That decision's verdict.
        expected_revision: The channel's revision as the caller's client saw it (its ETag).
        reason: Why, in a person's words.
        actor: Needs the scope `promote`, and the adapter within its limit.
        override_reason: Why the verdict is set aside; empty when it is not. The caller has checked the right
            and the second person.

    Returns:
        The channel as it is now.

    Raises:
        ConflictError: not passed and no override (`version-not-passed`), or the bytes to ship do not exist.
        PreconditionFailed: the channel was changed meanwhile (`channel-changed`).
    """
    actor.require(TokenScope.PROMOTE, version.adapter.name)
    channel = get_channel(channel_name)
    _require_reason(reason)
    if verdict != VersionState.PASSED and not (override_reason and version.state in VERDICT_STATES):
        raise ConflictError("version-not-passed", reference=str(version), verdict=verdict)
    return _change(
        channel,
        Promotion(
            kind=PromotionKind.PROMOTE,
            version=version,
            artifact=_shipped_artifact(version, channel.form),
            decision_id=decision_id,
            verdict=verdict,
            reason=reason,
            override_reason=override_reason,
        ),
        expected_revision=expected_revision,
        actor=actor,
    )


def rollback_channel(
    *,
    channel_name: str,
    expected_revision: int,
    reason: str,
    actor: Actor,
    to_promotion: int | None = None,
) -> Channel:
    """Makes a channel serve again, byte for byte, what an earlier promotion brought.

    Args:
        channel_name: The channel.
        expected_revision: The channel's revision as the client saw it.
        reason: Why, in a person's words.
        actor: Needs the scope `promote`, and the adapter that comes back within its limit.
        to_promotion: Id of the promotion to go back to; None goes to the one before the present. Rolling back
            twice goes two promotions back.

    Returns:
        The channel as it is now.

    Raises:
        ConflictError: there is nothing to go back to.
        NotFoundError: the channel has no such promotion.
        PreconditionFailed: the channel was changed meanwhile.
    """
    actor.require(TokenScope.PROMOTE)
    channel = get_channel(channel_name)
    _require_reason(reason)
    target = _rollback_target(channel, to_promotion)
    actor.require(TokenScope.PROMOTE, target.version.adapter.name)
    return _change(
        channel,
        Promotion(
            kind=PromotionKind.ROLLBACK,
            version=target.version,
            artifact=target.artifact,
            decision_id=target.decision_id,
            verdict=target.verdict,
            reason=reason,
            override_reason=target.override_reason,
            restores=target,
        ),
        expected_revision=expected_revision,
        actor=actor,
    )


def _change(channel: Channel, promotion: Promotion, *, expected_revision: int, actor: Actor) -> Channel:
    with transaction.atomic():
        revision = expected_revision + 1
        is_changed = Channel.objects.filter(pk=channel.pk, revision=expected_revision).update(
            revision=revision
        )
        # Read after the compare-and-set, which locks the row until the end of the transaction.
        channel = get_channel(channel.name)
        if not is_changed:
            raise PreconditionFailed("channel-changed", name=channel.name, etag=channel_etag(channel))
        previous = channel.current
        promotion.channel, promotion.revision, promotion.previous = channel, revision, previous
        promotion.created_by = actor.user
        promotion.save(force_insert=True)
        Channel.objects.filter(pk=channel.pk).update(current=promotion)
        record_audit(
            actor=actor,
            action=f"channel.{promotion.kind}",
            target=channel,
            before=None if previous is None else _facts(previous),
            after=_facts(promotion),
            reason=promotion.reason,
        )
    return get_channel(channel.name)


def _facts(promotion: Promotion) -> dict[str, object]:
    return {
        "promotion": promotion.pk,
        "version": str(promotion.version),
        "artifact": promotion.artifact_id,
        "verdict": promotion.verdict,
        "override_reason": promotion.override_reason,
    }


def _rollback_target(channel: Channel, to_promotion: int | None) -> Promotion:
    if to_promotion is None:
        target = find_rollback_target(channel)
        if target is None:
            raise ConflictError("nothing-to-roll-back", name=channel.name)
        return target
    chosen = channel.promotions.filter(pk=to_promotion).first()
    if chosen is None:
        raise NotFoundError("promotion-not-found", name=channel.name, promotion_id=to_promotion)
    return chosen.restores or chosen


def _shipped_artifact(version: AdapterVersion, form: str) -> Artifact:
    artifact = version.merged_artifact if form == ServingForm.MERGED else version.artifact
    if artifact is None:
        message = f"Version {shown(version)} has no merged model, which this channel ships."
        raise ConflictError("merged-model-missing", message)
    return artifact


def _require_reason(reason: str) -> None:
    if not reason.strip():
        fault = Fault(code="reason-missing", message="Say why; the reason is kept.", where="/reason")
        raise ValidationFailed("reason-missing", faults=[fault])
