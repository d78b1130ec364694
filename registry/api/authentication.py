"""`Authorization: Bearer assay_<prefix>_<secret>`; browsers come with Django's session instead."""

from django.contrib.auth.models import User
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from registry.models import ApiToken
from registry.services.tokens import TokenRejected, authenticate_token

KEYWORD = "Bearer"


class TokenAuthentication(BaseAuthentication):
    """Accepts an API token; `request.auth` is then its row."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        """The token's user and the token; None when the request carries no `Authorization` header.

        Raises:
            AuthenticationFailed: there is such a header, but it does not hold a token that is accepted; its
                code is `token-invalid`, `token-expired`, `token-revoked` or `user-inactive`.
        """
        header = get_authorization_header(request)
        if not header:
            return None
        scheme, _, text = header.decode("latin-1").partition(" ")
        if scheme.lower() != KEYWORD.lower():
            raise AuthenticationFailed("Use 'Authorization: Bearer <token>'.", code="token-invalid")
        try:
            token = authenticate_token(text.strip())
        except TokenRejected as error:
            raise AuthenticationFailed(error.detail, code=error.code) from error
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        """What stands in `WWW-Authenticate` beside a 401."""
        return f'{KEYWORD} realm="assay"'


class TokenAuthenticationScheme(OpenApiAuthenticationExtension):  # type: ignore[misc]
    """Tells the OpenAPI document about the token."""

    target_class = "registry.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: object) -> dict[str, str]:
        """HTTP bearer authentication."""
        return {"type": "http", "scheme": "bearer", "bearerFormat": "assay_<prefix>_<secret>"}
