"""API tokens: made, shown once, checked and revoked. Only the sha256 of a secret is kept.

A token is `assay_<prefix>_<secret>`: the prefix (12 hexadecimal digits) finds the row and may stand in logs,
the secret (256 random bits) is compared in constant time. Its entropy makes a slow password hash needless.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q
from django.utils import timezone

from registry.choices import TokenScope
from registry.errors import AssayError, Fault, ValidationFailed
from registry.models import Adapter, ApiToken
from registry.models.fields import MAX_NAME_LENGTH
from registry.services.actors import Actor
from registry.services.audit import record_audit
from registry.services.names import find_name_fault, near_misses

TOKEN_TAG = "assay"  # noqa: S105 - the fixed first part, no secret
_PREFIX_BYTES = 6
_SECRET_BYTES = 32
_MAX_TOKEN_CHARS = 256
LAST_USED_STEP = timedelta(minutes=1)
# Compared when the prefix is unknown, so that both ways take the same time.
_NO_SECRET_SHA256 = "0" * 64


class TokenRejected(AssayError):
    """The token is not accepted (401)."""

    default_status = 401
    wordings = {
        "token-invalid": "The token is unknown or damaged; make a new one or check how it was copied.",
        "token-expired": "The token expired at {expired_at}; make a new one.",
        "token-revoked": "The token was revoked; make a new one.",
        "user-inactive": "The token's user has been deactivated.",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedToken:
    """A new token: its row, and the text that is shown this one time."""

    token: ApiToken
    text: str = field(repr=False)


def create_token(
    *,
    user: User,
    name: str,
    scopes: Iterable[str],
    adapter_names: Iterable[str] = (),
    expires_at: datetime | None = None,
    actor: Actor,
) -> IssuedToken:
    """Makes a token.

    Args:
        user: Whose token it is; changes made with it are his.
        name: What it is for, for people.
        scopes: Any of `TokenScope`, at least one.
        adapter_names: Adapters it is limited to; adapters that do not exist yet are made, so that a CI's
            token can be limited before the first submission. Empty means all.
        expires_at: When it ends; None means that it does not expire.
        actor: Needs the scope `admin`.

    Raises:
        ValidationFailed: unknown scopes, a bad name, an expiry in the past; every fault at once.
    """
    actor.require(TokenScope.ADMIN)
    wanted, names = sorted(set(scopes)), sorted(set(adapter_names))
    faults = [*_find_scope_faults(wanted), *_find_name_faults(name, names)]
    if expires_at is not None and expires_at <= timezone.now():
        faults.append(Fault(code="expiry-past", message="The expiry lies in the past.", where="/expires_at"))
    if faults:
        raise ValidationFailed("token-invalid", faults=faults)
    prefix, secret = secrets.token_hex(_PREFIX_BYTES), secrets.token_hex(_SECRET_BYTES)
    with transaction.atomic():
        token = ApiToken.objects.create(
            name=name,
            prefix=prefix,
            secret_sha256=_hash(secret),
            user=user,
            scopes=wanted,
            expires_at=expires_at,
            created_by=actor.user,
        )
        token.adapters.set([Adapter.objects.get_or_create(name=item)[0] for item in names])
        after = {"name": name, "user": user.get_username(), "scopes": wanted, "adapters": names}
        record_audit(actor=actor, action="token.create", target=token, after=after)
    return IssuedToken(token=token, text=f"{TOKEN_TAG}_{prefix}_{secret}")


def revoke_token(*, token: ApiToken, actor: Actor, reason: str = "") -> None:
    """Ends a token at once; revoking it again changes nothing.

    Raises:
        ScopeError: the actor is neither an admin nor the token's user.
    """
    if actor.user is None or actor.user.pk != token.user_id:
        actor.require(TokenScope.ADMIN)
    with transaction.atomic():
        now = timezone.now()
        if ApiToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=now):
            token.revoked_at = now
            record_audit(
                actor=actor,
                action="token.revoke",
                target=token,
                before={"revoked_at": None},
                after={"revoked_at": now.isoformat()},
                reason=reason,
            )


def authenticate_token(text: str) -> ApiToken:
    """The row of a token that is accepted now; notes its use at most once a minute.

    Raises:
        TokenRejected: unknown or damaged (`token-invalid`), `token-expired`, `token-revoked` or
            `user-inactive`. The last three are told only to who has the right secret.
    """
    prefix, secret = _split(text)
    token = ApiToken.objects.select_related("user").filter(prefix=prefix).first() if prefix else None
    expected = token.secret_sha256 if token is not None else _NO_SECRET_SHA256
    is_right = hmac.compare_digest(_hash(secret), expected)
    if token is None or not is_right:
        raise TokenRejected("token-invalid")
    now = timezone.now()
    if token.revoked_at is not None:
        raise TokenRejected("token-revoked")
    if token.expires_at is not None and token.expires_at <= now:
        raise TokenRejected("token-expired", expired_at=token.expires_at.isoformat())
    if not token.user.is_active:
        raise TokenRejected("user-inactive")
    if token.last_used_at is None or token.last_used_at < now - LAST_USED_STEP:
        is_stale = Q(last_used_at=None) | Q(last_used_at__lt=now - LAST_USED_STEP)
        ApiToken.objects.filter(is_stale, pk=token.pk).update(last_used_at=now)
    return token


def _split(text: str) -> tuple[str, str]:
    tag, _, rest = text[: _MAX_TOKEN_CHARS + 1].partition("_")
    prefix, _, secret = rest.partition("_")
    is_well_formed = len(text) <= _MAX_TOKEN_CHARS and text.isascii() and text.isprintable()
    return (prefix, secret) if tag == TOKEN_TAG and is_well_formed else ("", "")


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def _find_scope_faults(scopes: list[str]) -> list[Fault]:
    if not scopes:
        return [Fault(code="scopes-empty", message="Give at least one scope.", where="/scopes")]
    return [
        Fault(
            code="scope-unknown",
            message=f"There is no scope {scope!r}.{near_misses(scope, TokenScope.values)}",
            where="/scopes",
        )
        for scope in scopes
        if scope not in TokenScope.values
    ]


def _find_name_faults(name: str, adapter_names: list[str]) -> list[Fault]:
    faults = []
    if not name.strip() or len(name) > MAX_NAME_LENGTH:
        message = f"A token's name has 1 to {MAX_NAME_LENGTH} characters."
        faults.append(Fault(code="name-invalid", message=message, where="/name"))
    found = (find_name_fault(item, where="/adapters") for item in adapter_names)
    return faults + [fault for fault in found if fault is not None]
