"""Two ways to authenticate: a token of the person, or the browser's session (then with CSRF)."""

from __future__ import annotations

from django.utils.translation import gettext as _
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request

from accounts.credentials import tokens
from accounts.errors import NotSignedIn
from accounts.models import APIToken, User
from accounts.rest import rates


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer brt_…`"""

    def authenticate(self, request: Request) -> tuple[User, APIToken] | None:
        header = request.headers.get("Authorization")
        if header is None:
            return None
        once = request._request  # the middleware for keys asks before the view
        token: APIToken | None = getattr(once, "api_token", None)
        if token is None:
            try:
                token = once.api_token = _token_of(header)  # type: ignore[attr-defined]
            except NotSignedIn:
                rates.count_stranger()
                raise
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class SignedInSession(SessionAuthentication):
    """The session cookie; a request that writes must send the CSRF token too."""

    def enforce_csrf(self, request: Request) -> None:
        try:
            super().enforce_csrf(request)
        except PermissionDenied:
            rates.count_stranger()
            raise PermissionDenied(
                _("Berth could not verify that this request comes from one of its pages."), code="csrf_failed"
            ) from None


def _token_of(header: str) -> APIToken:
    kind, _space, secret = header.partition(" ")
    if kind.lower() != "bearer":
        raise NotSignedIn(
            "not_signed_in",
            _("This way to sign in is not supported here."),
            _("Send “Authorization: Bearer …” with a token from your profile."),
        )
    return tokens.authenticate(secret.strip())
