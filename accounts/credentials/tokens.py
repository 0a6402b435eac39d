"""API tokens, `brt_<prefix>_<secret>`: the prefix finds the row, the digest of the whole token proves it.

The secret has 200 random bits and more, so one round of SHA-256 protects it as well as a slow hash would.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
import string
from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import signals
from accounts.access import Actor, not_there, visible_tenants
from accounts.errors import Conflict, Invalid, NotAllowed, NotSignedIn
from accounts.live import publish
from accounts.locks import locked
from accounts.models import APIToken, Membership, Scope, Tenant, User
from accounts.service_accounts.answering import works
from accounts.text import is_visible
from accounts.trail import audit

KIND = "brt"
DEFAULT_DAYS = 90
LONGEST_DAYS = 366
MOST_PER_PERSON = 100
USE_WRITTEN_EVERY = timedelta(minutes=1)  # or each request of a busy script would be a write
_PREFIX_LETTERS = string.ascii_lowercase + string.digits
_SECRET_LETTERS = string.ascii_letters + string.digits


def digest(secret: str) -> str:
    return hashlib.sha256(secret.encode()).hexdigest()


def new_secret(kind: str) -> tuple[str, str]:
    """Return a new secret's prefix, and the whole secret."""
    prefix = _random(_PREFIX_LETTERS, 12)
    return prefix, f"{kind}_{prefix}_{_random(_SECRET_LETTERS, 40)}"


def prefix_of(secret: str, kind: str) -> str:
    """Return the secret's prefix; empty if it is no secret of this kind."""
    parts = secret.split("_")
    prefix = parts[1] if len(parts) == 3 and parts[0] == kind and secret.isascii() else ""
    return prefix if prefix.isalnum() else ""


def is_proven(secret: str, known_digest: str | None) -> bool:
    """Compare the digests, in the same time whether such a token exists or not."""
    return hmac.compare_digest(known_digest or digest(""), digest(secret)) and known_digest is not None


def usable(actor: Actor) -> QuerySet[APIToken]:
    """Tokens of the person, neither revoked nor expired; an actor bound to a tenant sees that tenant's only."""
    tokens = APIToken.objects.filter(user=actor.user, revoked_at=None, expires_at__gt=timezone.now())
    if actor.token is not None and actor.token.tenant_id is not None:
        tokens = tokens.filter(tenant=actor.token.tenant_id)
    return tokens


@transaction.atomic
def issue(
    user: User, name: str, scopes: Sequence[str], tenant: Tenant | None = None, days: int = DEFAULT_DAYS
) -> tuple[APIToken, str]:
    """Return a new token and its secret, which is never shown again."""
    return _issue(user, name, scopes, tenant, days, actor=None)


@transaction.atomic
def create(
    actor: Actor, name: str, scopes: Sequence[str], tenant_slug: str | None, days: int
) -> tuple[APIToken, str]:
    """Create a token for the actor. An actor's token can only create one with no more rights and no later end."""
    tenant = None
    if tenant_slug is not None:
        tenant = visible_tenants(actor).filter(slug=tenant_slug).first()
        if tenant is None:
            raise _invalid("tenant", _("You are not in a tenant of this name."))
    return create_for(actor, actor.user, name, scopes, tenant, days)


@transaction.atomic
def create_for(
    actor: Actor, user: User, name: str, scopes: Sequence[str], tenant: Tenant | None, days: int
) -> tuple[APIToken, str]:
    """Create a token of this account, which the caller has found to be the actor's own or one that they manage."""
    if actor.token is not None:
        _require_narrower(actor.token, scopes, tenant)
    locked(User.objects.all()).get(pk=user.pk)  # one at a time, or the limit could be passed
    if usable(Actor(user)).count() >= MOST_PER_PERSON:
        raise Conflict(
            "too_many_tokens",
            _("You have %(count)d tokens already.") % {"count": MOST_PER_PERSON},
            _("Revoke those that you no longer use."),
        )
    return _issue(user, name, scopes, tenant, days, actor=actor)


def get(actor: Actor, token_id: UUID) -> APIToken:
    """Return a token that the person can still use, or raise NotThere."""
    token = usable(actor).filter(id=token_id).first()
    if token is None:
        raise not_there()
    return token


def revoke(actor: Actor, token_id: UUID) -> None:
    """Revoke a token at once; its row stays, for the trail."""
    with transaction.atomic():
        token = locked(usable(actor)).filter(id=token_id).first()
        if token is None:
            raise not_there()
        end(actor, token)


@transaction.atomic
def revoke_all(actor: Actor) -> None:
    for token in locked(usable(actor)):
        end(actor, token)


def end(actor: Actor, token: APIToken) -> None:
    """Revoke any person's token, and close the websockets that it opened."""
    token.revoked_at = timezone.now()
    token.save(update_fields=["revoked_at"])
    audit.record(actor, "token.revoke", target=token, tenant=token.tenant, data={"name": token.name})
    publish(f"user.{token.user_id}", {"type": "access.changed"})
    signals.token_revoked.send(sender=APIToken, token=token)


def authenticate(secret: str) -> APIToken:
    """Return the token of this secret. Raise NotSignedIn if it may not be used now."""
    prefix = prefix_of(secret, KIND)
    token = (
        APIToken.objects.select_related("user", "tenant").filter(prefix=prefix).first() if prefix else None
    )
    if not is_proven(secret, token.digest if token else None) or token is None or not is_usable(token):
        raise NotSignedIn(
            "token_refused",
            _("This token is not valid: it is unknown, expired or revoked, or you left its tenant."),
            _("Create a new one in your profile, and send it as “Authorization: Bearer …”."),
        )
    _note_use(token)
    return token


def is_usable(token: APIToken) -> bool:
    """Return True if the token is valid, and its person active and still in the tenant that it is bound to.

    For a token of a service account, also somebody must answer for the account.
    """
    user = token.user
    if token.revoked_at is not None or token.expires_at <= timezone.now() or not user.is_active:
        return False
    if user.service_of_id is not None and not works(user):
        return False
    if token.tenant_id is None or Actor(user, token).is_admin:
        return True
    return Membership.objects.filter(user=user, tenant_id=token.tenant_id).exists()


def _note_use(token: APIToken) -> None:
    now = timezone.now()
    if token.last_used_at is None or token.last_used_at < now - USE_WRITTEN_EVERY:
        stale = Q(last_used_at=None) | Q(last_used_at__lt=now - USE_WRITTEN_EVERY)
        APIToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)


def _issue(
    user: User, name: str, scopes: Sequence[str], tenant: Tenant | None, days: int, *, actor: Actor | None
) -> tuple[APIToken, str]:
    check(user, name, scopes, tenant, days)
    expires_at = timezone.now() + timedelta(days=days)
    if actor is not None and actor.token is not None:
        expires_at = min(expires_at, actor.token.expires_at)
    prefix, secret = new_secret(KIND)
    token = APIToken.objects.create(
        user=user,
        name=name,
        prefix=prefix,
        digest=digest(secret),
        scopes=[scope for scope in Scope.values if scope in scopes],
        tenant=tenant,
        expires_at=expires_at,
    )
    data = {"name": name, "user": user.username, "scopes": token.scopes, "days": days}
    audit.record(actor, "token.create", target=token, tenant=tenant, data=data)
    return token, secret


def check(user: User, name: str, scopes: Sequence[str], tenant: Tenant | None, days: int) -> None:
    """Raise Invalid if the person may have no such token."""
    unknown = sorted(set(scopes) - set(Scope.values))
    if not scopes or unknown:
        choices = ", ".join(Scope.values)
        raise _invalid("scopes", _("Choose one or more of: %(scopes)s.") % {"scopes": choices})
    if Scope.ADMIN in scopes and not user.is_staff:
        raise _invalid("scopes", _("Only admins can have tokens with the scope “admin”."))
    if user.service_of_id is not None and (tenant is None or tenant.pk != user.service_of_id):
        raise _invalid("tenant", _("Tokens of a service account are limited to its own tenant."))
    if not 1 <= days <= LONGEST_DAYS:
        raise _invalid("days", _("Use 1 to %(days)d days.") % {"days": LONGEST_DAYS})
    check_name(name)


def check_name(name: str) -> None:
    if not name.strip() or len(name) > 80 or not is_visible(name):
        raise _invalid("name", _("Give it a name of 1 to 80 characters, on one line."))


def _require_narrower(parent: APIToken, scopes: Sequence[str], tenant: Tenant | None) -> None:
    within_tenant = parent.tenant_id is None or (tenant is not None and tenant.id == parent.tenant_id)
    if not set(scopes) <= set(parent.scopes) or not within_tenant:
        raise NotAllowed(
            "token_too_wide",
            _("A token cannot create a token with more rights than its own."),
            _("Use fewer scopes or the same tenant, or create it in your profile."),
        )


def _invalid(field: str, text: str) -> Invalid:
    return Invalid("invalid", text, _("Change it and try again."), fields={field: [text]})


def _random(letters: str, length: int) -> str:
    return "".join(secrets.choice(letters) for _index in range(length))
