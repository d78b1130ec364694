"""Who acts: a token, a signed-in user or the system, and what it may do.

Services take an `Actor` and call `require` themselves, so a rule holds whatever the entrance.
"""

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User
from django.http import HttpRequest
from rest_framework.request import Request

from registry.choices import TokenScope
from registry.errors import ScopeError
from registry.models import ApiToken

ALL_SCOPES: frozenset[str] = frozenset(TokenScope.values)
GROUP_SCOPES: dict[str, frozenset[str]] = {
    "reviewers": frozenset({TokenScope.READ, TokenScope.REVIEW}),
    "promoters": frozenset({TokenScope.READ, TokenScope.REVIEW, TokenScope.PROMOTE}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """Who does something.

    Attributes:
        name: As it stands in the audit log: a user name, `token:<prefix>` or `system`.
        user: The person behind it; None for the system and for nobody.
        token: The API token used, or None.
        scopes: What it may do; `admin` includes every other scope.
        adapter_names: Adapters it is limited to; None means all.
    """

    name: str
    user: User | None
    token: ApiToken | None
    scopes: frozenset[str]
    adapter_names: frozenset[str] | None

    def has_scope(self, scope: str) -> bool:
        """Whether the scope, or `admin`, was granted."""
        return scope in self.scopes or TokenScope.ADMIN in self.scopes

    def may_use_adapter(self, adapter_name: str) -> bool:
        """Whether the actor's limit to named adapters, if any, names this one."""
        return self.adapter_names is None or adapter_name in self.adapter_names

    def require(self, scope: str, adapter_name: str | None = None) -> None:
        """Lets the actor pass or raises.

        Raises:
            ScopeError: the scope was not granted, or the actor is limited to other adapters.
        """
        self.require_any((scope,), adapter_name)

    def require_any(self, scopes: tuple[str, ...], adapter_name: str | None = None) -> None:
        """As `require`, when one of several scopes is enough."""
        if not any(self.has_scope(scope) for scope in scopes):
            granted = ", ".join(sorted(self.scopes)) or "none"
            raise ScopeError("scope-missing", required=" or ".join(scopes), granted=granted)
        if adapter_name is not None and not self.may_use_adapter(adapter_name):
            raise ScopeError("adapter-out-of-scope", adapter=adapter_name)


SYSTEM = Actor(name="system", user=None, token=None, scopes=ALL_SCOPES, adapter_names=None)
NOBODY = Actor(name="anonymous", user=None, token=None, scopes=frozenset(), adapter_names=frozenset())


def actor_of_token(token: ApiToken) -> Actor:
    """The actor behind an accepted token."""
    names = frozenset(token.adapters.values_list("name", flat=True))
    return Actor(
        name=f"token:{token.prefix}",
        user=token.user,
        token=token,
        scopes=frozenset(token.scopes) & ALL_SCOPES,
        adapter_names=names or None,
    )


def actor_of_user(user: User) -> Actor:
    """The actor behind a signed-in user: superusers may do all, other staff what their groups may."""
    return Actor(
        name=user.get_username(), user=user, token=None, scopes=_scopes_of_user(user), adapter_names=None
    )


def actor_from_request(request: Request | HttpRequest) -> Actor:
    """The actor of an authenticated REST or admin request; one with no scope when nobody is signed in."""
    token = getattr(request, "auth", None)
    if isinstance(token, ApiToken):
        return actor_of_token(token)
    user: User | AnonymousUser = request.user
    return NOBODY if isinstance(user, AnonymousUser) else actor_of_user(user)


def _scopes_of_user(user: User) -> frozenset[str]:
    if not (user.is_active and user.is_staff):
        return frozenset()
    if user.is_superuser:
        return ALL_SCOPES
    scopes = {str(TokenScope.READ)}
    for name in user.groups.filter(name__in=GROUP_SCOPES).values_list("name", flat=True):
        scopes |= GROUP_SCOPES[name]
    return frozenset(scopes)
