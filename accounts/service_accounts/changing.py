"""Use cases of service accounts: create, take over, delete, and give them tokens. People do this, never an account."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError, QuerySet
from django.utils.translation import gettext as _

from accounts import signals
from accounts.access import Actor, not_there, owned_tenants, require_owner, tenant_by_slug, visible_tenants
from accounts.credentials import tokens
from accounts.errors import Conflict, Invalid, NotAllowed
from accounts.locks import locked
from accounts.models import APIToken, Membership, Scope, Tenant, User, valid_slug
from accounts.service_accounts.answering import accounts
from accounts.trail import audit

MOST_PER_TENANT = 50

# Rooms above say which of these users still run or queue something.
_busy: list[Callable[[QuerySet[User]], QuerySet[User]]] = []


def register(busy: Callable[[QuerySet[User]], QuerySet[User]]) -> None:
    _busy.append(busy)


def visible(actor: Actor) -> QuerySet[User]:
    """Service accounts of the tenants that the actor owns, with `works`."""
    rows = accounts(User.objects.filter(service_of__in=owned_tenants(actor)))
    return rows.select_related("service_of", "responsible").prefetch_related("memberships")


def get(actor: Actor, account_id: UUID, tenant: Tenant | None = None) -> User:
    """Return the account, of this tenant if one is named. Raise NotThere outside of its tenant, NotAllowed for all but
    the tenant's owners."""
    tenants = [tenant] if tenant else visible_tenants(actor)
    rows = accounts(User.objects.filter(service_of__in=tenants)).select_related("service_of", "responsible")
    account: User | None = rows.filter(pk=account_id).first()
    if account is None or account.service_of is None:
        raise not_there()
    require_owner(actor, account.service_of)
    return account


def create(actor: Actor, *, tenant: str, name: str, role: str) -> User:
    """Create an account for which the actor answers. Raise Invalid or Conflict if the name cannot be used."""
    owned = tenant_by_slug(actor, tenant)
    try:
        valid_slug(name)
    except ValidationError as error:
        text = str(error.message)
        raise Invalid("invalid", text, _("Choose another one."), fields={"name": [text]}) from None
    with _by_an_owner(actor, owned):
        if accounts(User.objects.filter(service_of=owned)).count() >= MOST_PER_TENANT:
            raise Conflict(
                "too_many_service_accounts",
                _("Your team has %(count)d service accounts already.") % {"count": MOST_PER_TENANT},
                _("Delete those that are no longer used."),
            )
        account = _insert(actor, owned, name)
        Membership.objects.create(tenant=owned, user=account, role=role)
        _record(actor, "create", account, role=role)
    account.works = True  # type: ignore[attr-defined]  # as `accounts` annotates it
    return account


def _insert(actor: Actor, tenant: Tenant, name: str) -> User:
    """Insert the row. No tenant has a dot in its slug, so that two tenants never make the same user name."""
    account = User(username=f"svc.{tenant.slug}.{name}", service_of=tenant, responsible=actor.user)
    account.set_unusable_password()
    try:
        with transaction.atomic():
            account.save(force_insert=True)
    except IntegrityError:
        text = _("The name “%(name)s” is taken, perhaps by a deleted account with workspaces or jobs.") % {
            "name": account.username
        }
        hint = _("Choose another name.")
        raise Conflict("service_account_exists", text, hint, fields={"name": [text]}) from None
    return account


def adopt(actor: Actor, account: User) -> bool:
    """Make the actor answer for the account, and revoke its tokens: others know their secrets. Return False if the
    actor answered already."""
    with _by_an_owner(actor, _tenant(account), account):
        before = account.responsible
        if before == actor.user:
            return False
        User.objects.filter(pk=account.pk).update(responsible=actor.user)
        _record(actor, "adopt", account, before=before.username if before else "")
        account.responsible = actor.user
        account.works = True  # type: ignore[attr-defined]
        _end_tokens(actor, account)
        signals.send_access_changed(account)
    return True


def delete(actor: Actor, account: User) -> None:
    """Delete the account: its tokens end at once. Its row stays if it has or had workspaces or jobs.

    Raise Conflict while it runs or queues something: what runs must not outlive what counts toward the limit.
    """
    with _by_an_owner(actor, _tenant(account), account):
        if any(busy(User.objects.filter(pk=account.pk)).exists() for busy in _busy):
            raise Conflict(
                "service_account_busy",
                _("%(name)s still has workspaces or jobs that run or wait.") % {"name": account.username},
                _("Stop them first."),
            )
        _end_tokens(actor, account)
        Membership.objects.filter(user=account).delete()
        User.objects.filter(pk=account.pk).update(is_active=False)
        _record(actor, "delete", account)
        account.is_active = False
        signals.send_access_changed(account)
        try:
            with transaction.atomic():
                User.objects.get(pk=account.pk).delete()
        except ProtectedError:
            pass


def tokens_of(account: User) -> QuerySet[APIToken]:
    """Tokens of the account that are neither revoked nor expired."""
    return tokens.usable(Actor(account)).select_related("tenant")


def create_token(
    actor: Actor, account: User, name: str, scopes: Sequence[str], days: int
) -> tuple[APIToken, str]:
    """Create a token of the account and return it with its secret, which is never shown again.

    Only the owner who answers for the account knows secrets of it: they end when that owner leaves.
    """
    with _by_an_owner(actor, _tenant(account), account):
        if User.objects.get(pk=account.pk).responsible_id != actor.user.pk:
            raise NotAllowed(
                "not_responsible",
                _("Only the owner who answers for %(name)s can create its tokens.")
                % {"name": account.username},
                _("Take it over first. This revokes the tokens that it has."),
            )
        return tokens.create_for(actor, account, name, scopes, _tenant(account), days)


def revoke_token(actor: Actor, account: User, token_id: UUID) -> None:
    with _by_an_owner(actor, _tenant(account), account):
        tokens.end(actor, get_token(account, token_id))


def get_token(account: User, token_id: UUID) -> APIToken:
    token = tokens_of(account).filter(pk=token_id).first()
    if token is None:
        raise not_there()
    return token


def _end_tokens(actor: Actor, account: User) -> None:
    for token in locked(tokens.usable(Actor(account))):
        tokens.end(actor, token)


@contextmanager
def _by_an_owner(actor: Actor, tenant: Tenant, *accounts_locked: User) -> Iterator[None]:
    """Allow one change at a time, by a person who owns the tenant, of accounts that were not deleted meanwhile."""
    actor.require(Scope.WORKSPACES)
    if actor.user.service_of_id is not None:
        raise NotAllowed(
            "people_only",
            _("Service accounts cannot manage service accounts."),
            _("An owner of your team can."),
        )
    with transaction.atomic():
        ids = {account.pk for account in accounts_locked}
        there = list(locked(User.objects.filter(pk__in=ids, is_active=True)))
        locked(Tenant.objects.all()).get(pk=tenant.pk)
        require_owner(actor, tenant)
        if len(there) < len(ids):
            raise not_there()
        yield


def _tenant(account: User) -> Tenant:
    assert account.service_of is not None
    return account.service_of


def _record(actor: Actor, verb: str, account: User, **data: str) -> None:
    details = {"username": account.username, **data}
    audit.record(actor, f"service_account.{verb}", target=account, tenant=account.service_of, data=details)
