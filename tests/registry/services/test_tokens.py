"""Making tokens: every fault at once, rights, limits."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from registry.errors import ScopeError, ValidationFailed
from registry.models import Adapter, ApiToken, AuditEvent
from registry.services.actors import SYSTEM, actor_of_token, actor_of_user
from registry.services.tokens import authenticate_token, create_token, revoke_token
from tests.fixtures.registry import make_caller

pytestmark = pytest.mark.django_db


@pytest.fixture
def user() -> User:
    return User.objects.create_user("ann")


def test_round_trip(user: User) -> None:
    issued = create_token(user=user, name="ci", scopes=["read"], adapter_names=["new"], actor=SYSTEM)
    tag, prefix, secret = issued.text.split("_")
    assert (tag, prefix, len(secret)) == ("assay", issued.token.prefix, 64)
    token = authenticate_token(issued.text)
    actor = actor_of_token(token)
    assert (actor.name, actor.adapter_names) == (f"token:{prefix}", frozenset({"new"}))
    # A limit to an adapter that does not exist yet must not become "all".
    assert Adapter.objects.get().name == "new"
    assert AuditEvent.objects.get(action="token.create").after == {
        "name": "ci", "user": "ann", "scopes": ["read"], "adapters": ["new"],
    }  # fmt: skip


def test_every_fault_at_once(user: User) -> None:
    with pytest.raises(ValidationFailed) as caught:
        create_token(
            user=user, name=" ", scopes=["reed"], adapter_names=["Bad"],
            expires_at=timezone.now() - timedelta(days=1), actor=SYSTEM,
        )  # fmt: skip
    codes = [fault.code for fault in caught.value.faults]
    assert codes == ["scope-unknown", "name-invalid", "name-invalid", "expiry-past"]
    assert "Did you mean 'read'" in caught.value.faults[0].message
    assert ApiToken.objects.count() == 0


def test_rights(user: User) -> None:
    with pytest.raises(ScopeError):
        create_token(user=user, name="x", scopes=["admin"], actor=actor_of_user(user))
    caller = make_caller("read")
    assert caller.actor.token is not None
    with pytest.raises(ScopeError):
        revoke_token(token=caller.actor.token, actor=actor_of_user(user))
    revoke_token(token=caller.actor.token, actor=caller.actor)
    assert ApiToken.objects.get().revoked_at is not None
