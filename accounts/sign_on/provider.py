"""Sign-on by the OpenID Connect provider: code flow with PKCE, state and nonce.

allauth does the OAuth part: it keeps each state in the session, for one use within ten minutes, and exchanges the code.
The OpenID Connect part is checked here, strictly: the provider's own issuer, the signature with a key of the
provider and no weaker algorithm, the audience, the times, and the nonce that this browser was sent with.
"""

from __future__ import annotations

import logging
import secrets
from dataclasses import dataclass
from typing import Any

import jwt
import requests
from allauth.socialaccount.adapter import get_adapter
from allauth.socialaccount.internal import statekit
from allauth.socialaccount.providers.oauth2.client import OAuth2Client, OAuth2Error
from allauth.socialaccount.providers.oauth2.utils import generate_code_challenge
from django.core.exceptions import ImproperlyConfigured
from django.http import HttpRequest
from django.utils.translation import gettext as _

from accounts.errors import NotSignedIn, Refusal
from accounts.sign_on.configuration import Provider, require_safe

log = logging.getLogger(__name__)

ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"]
CLOCKS_DIFFER_AT_MOST_SECONDS = 60


class ProviderFault(Refusal):
    """The provider is away, or answers wrongly: the person cannot repair it."""

    status = 502


@dataclass(frozen=True)
class Proof:
    """Claims that the provider vouches for, and what `begin` kept while the person was at the provider."""

    claims: dict[str, Any]
    kept: dict[str, Any]


class Conversation:
    """A sign-on in one request of a browser. `callback` is the absolute address that the provider sends it back to."""

    def __init__(self, request: HttpRequest, provider: Provider, callback: str) -> None:
        self.request, self.provider, self.callback = request, provider, callback
        self.kept: dict[str, Any] = {}  # filled once the browser has shown its state
        self.http = get_adapter().get_requests_session()  # with a time limit

    def begin(self, keep: dict[str, Any]) -> str:
        """Return the address to send the browser to. `keep` comes back with the proof."""
        described = self._discover()
        challenge = generate_code_challenge()
        nonce = secrets.token_urlsafe(24)
        kept = {"verifier": challenge.pop("code_verifier"), "nonce": nonce, "keep": keep}
        client = self._client(described)
        client.state = statekit.stash_state(self.request, provider_id=self.provider.issuer, state=kept)
        parameters = {"nonce": nonce, **challenge}
        address = client.get_redirect_url(
            described["authorization_endpoint"], self.provider.scopes, parameters
        )
        return str(address)

    def finish(self) -> Proof:
        """Check what the browser brought back from the provider. Raise NotSignedIn or ProviderFault."""
        answer = self.request.GET
        state = statekit.unstash_state(
            self.request, provider_id=self.provider.issuer, state_id=answer.get("state", "")
        )
        if state is None:
            raise NotSignedIn(
                "sign_on_state",
                _("This sign-in was started in another browser, or too long ago."),
                _("Start again with the button below. Cookies must be allowed."),
            )
        self.kept = state["keep"]
        if "error" in answer or "code" not in answer:
            raise self._said_no(answer.get("error", ""))
        described = self._discover()
        tokens = self._exchange(described, answer["code"], state["verifier"])
        claims = self._verify(described, tokens, state["nonce"])
        return Proof(self._with_userinfo(described, tokens, claims), self.kept)

    def _discover(self) -> dict[str, Any]:
        described = self._get(f"{self.provider.issuer}/.well-known/openid-configuration")
        if str(described.get("issuer", "")).rstrip("/") != self.provider.issuer:
            raise self._fault("it describes itself as another issuer than BERTH_OIDC_ISSUER")
        for name in ("authorization_endpoint", "token_endpoint", "jwks_uri", "userinfo_endpoint"):
            url = described.get(name)
            if url is None and name == "userinfo_endpoint":
                continue
            try:
                require_safe(str(url), name)
            except ImproperlyConfigured as unsafe:
                raise self._fault(str(unsafe)) from None
        return described

    def _client(self, described: dict[str, Any]) -> OAuth2Client:
        methods = described.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        return OAuth2Client(
            self.request,
            self.provider.client_id,
            self.provider.client_secret,
            "POST",
            described["token_endpoint"],
            self.callback,
            basic_auth="client_secret_post" not in methods,
        )

    def _exchange(self, described: dict[str, Any], code: str, verifier: str) -> dict[str, Any]:
        try:
            tokens: dict[str, Any] = self._client(described).get_access_token(
                code, pkce_code_verifier=verifier
            )
        except OAuth2Error as error:
            if any(word in str(error) for word in ("invalid_client", "unauthorized_client")):
                raise self._fault(
                    "it does not accept BERTH_OIDC_CLIENT_ID and BERTH_OIDC_CLIENT_SECRET"
                ) from None
            raise self._unproven(
                "the code was refused: used before, too old, or for another address"
            ) from None
        except (requests.RequestException, ValueError, KeyError) as error:
            raise self._away(error) from None
        return tokens

    def _verify(self, described: dict[str, Any], tokens: dict[str, Any], nonce: str) -> dict[str, Any]:
        token = str(tokens.get("id_token", ""))
        try:
            claims: dict[str, Any] = jwt.decode(
                token,
                self._key(described, token),
                algorithms=ALGORITHMS,
                audience=self.provider.client_id,
                issuer=described["issuer"],
                leeway=CLOCKS_DIFFER_AT_MOST_SECONDS,
                options={"require": ["iss", "sub", "aud", "exp", "iat"]},
            )
        except (jwt.ExpiredSignatureError, jwt.ImmatureSignatureError):
            log.warning("sign-on: the provider's ID token is of another time; compare the clocks")
            raise ProviderFault(
                "sign_on_clock",
                _("The clocks of Berth and of %(name)s differ too much.") % {"name": self.provider.name},
                _("Tell an admin: the clocks of both servers must be set by NTP."),
            ) from None
        except jwt.PyJWTError as error:
            raise self._unproven(f"the ID token does not hold: {type(error).__name__}") from None
        if claims.get("azp", self.provider.client_id) != self.provider.client_id:
            raise self._unproven("the ID token was issued to another client")
        if not secrets.compare_digest(str(claims.get("nonce", "")).encode(), nonce.encode()):
            raise self._unproven("the ID token answers another sign-in (nonce)")
        return claims

    def _key(self, described: dict[str, Any], token: str) -> jwt.PyJWK:
        wanted = jwt.get_unverified_header(token).get("kid")
        keys = jwt.PyJWKSet.from_dict(self._get(described["jwks_uri"])).keys
        fitting = [key for key in keys if wanted is None or key.key_id == wanted]
        if not fitting or (wanted is None and len(fitting) > 1):
            raise jwt.InvalidKeyError
        return fitting[0]

    def _with_userinfo(
        self, described: dict[str, Any], tokens: dict[str, Any], claims: dict[str, Any]
    ) -> dict[str, Any]:
        if "userinfo_endpoint" not in described:
            return claims
        bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
        about = self._get(described["userinfo_endpoint"], headers=bearer)
        if about.get("sub") != claims["sub"]:
            raise self._unproven("userinfo speaks of another person")
        return claims | about

    def _get(self, url: str, headers: dict[str, str] | None = None) -> dict[str, Any]:
        try:
            answer = self.http.get(url, headers=headers)
            answer.raise_for_status()
            found = answer.json()
        except (requests.RequestException, ValueError) as error:
            raise self._away(error) from None
        if not isinstance(found, dict):
            raise self._fault("it answered something that is not JSON of an object")
        return found

    def _said_no(self, error: str) -> Refusal:
        if error == "access_denied":
            return NotSignedIn(
                "sign_on_cancelled",
                _("You were not signed in: it was cancelled, or %(name)s did not allow it.")
                % {"name": self.provider.name},
                _("Try again, or ask an admin for access to Berth."),
            )
        return self._fault(f"it answered with the error {error[:40]!r}")

    def _away(self, error: Exception) -> ProviderFault:
        log.warning("sign-on: %s does not answer (%s)", self.provider.issuer, type(error).__name__)
        return ProviderFault(
            "sign_on_away",
            _("%(name)s does not answer.") % {"name": self.provider.name},
            _("Try again in a few minutes. People who are signed in are not affected."),
        )

    def _fault(self, why: str) -> ProviderFault:
        log.error("sign-on: %s: %s", self.provider.issuer, why)
        return ProviderFault(
            "sign_on_fault",
            _("Sign-in with %(name)s is not set up correctly.") % {"name": self.provider.name},
            _("Tell an admin; the log of Berth says what is wrong."),
        )

    def _unproven(self, why: str) -> NotSignedIn:
        log.warning("sign-on refused: %s", why)
        return NotSignedIn(
            "sign_on_unproven",
            _("%(name)s could not confirm your identity.") % {"name": self.provider.name},
            _("Start again with the button below. If it happens again, tell an admin."),
        )
