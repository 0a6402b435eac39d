"""Accounts for the provider's people: found by issuer and subject, made at first sign-in, never taken over by name.

A user name or an e-mail address proves nothing: names change hands. An account that exists already is connected by its
own person (signed in at both sites in one browser), or by e-mail if the admins chose that.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Collection
from typing import Any

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.utils.translation import get_supported_language_variant
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict, NotAllowed
from accounts.locks import locked, one_at_a_time
from accounts.models import User
from accounts.sign_on import groups
from accounts.sign_on.configuration import Source
from accounts.trail import audit

# Lock for one sign-on at a time: two first sign-ins in two tabs make one person, and two people do not get the same
# account. Nothing under it waits on the network.
LOCK = "sign-on"
NAME_LENGTH = 150
SUBJECT_LENGTH = 191


def admit(provider: Source, claims: dict[str, Any]) -> User:
    """Return the person to sign in, with roles updated from their groups. Raise NotAllowed or Conflict."""
    _require_groups_told(provider, claims)
    with transaction.atomic():
        one_at_a_time(LOCK)
        account = _account(provider, claims)
        user = account.user if account else _awaited(provider, claims) or _create(provider, claims)
        if not user.is_active:
            raise NotAllowed(
                "deactivated",
                _("Your account “%(name)s” is deactivated.") % {"name": user.username},
                _("Ask an admin of this installation; your files are kept."),
            )
        follow(user, provider, claims)
    return user


def follow(user: User, provider: Source, claims: dict[str, Any]) -> None:
    """Take over names, address and roles, in the caller's transaction."""
    _take_over_details(user, claims)
    groups.follow(user, groups.groups_in(claims, provider.groups_claim), provider.grants)


def differs(user: User, provider: Source, claims: dict[str, Any], tenants: Collection[str]) -> bool:
    """Return True if `follow` would change something. `tenants`: slugs of those that there are.

    The memberships of `user` are read as they were prefetched.
    """
    told = groups.groups_in(claims, provider.groups_claim)
    return bool(_new_details(user, claims)) or groups.differ(user, told, provider.grants, tenants)


def connect(actor: Actor, provider: Source, claims: dict[str, Any]) -> None:
    """Allow the signed-in person to sign in by the provider too. Raise Conflict if the account is somebody else's."""
    with transaction.atomic():
        one_at_a_time(LOCK)
        account = _account(provider, claims)
        if account is not None and account.user_id != actor.user.pk:
            raise Conflict(
                "connected_elsewhere",
                _("This %(name)s account is connected to another person here.") % {"name": provider.name},
                _("Sign out there first, or ask an admin."),
            )
        if account is None:
            _connect(actor.user, provider, claims)


def connected_people(provider: Source) -> dict[str, User]:
    """Return all people who come from there by their subject, with their memberships."""
    rows = SocialAccount.objects.filter(provider=provider.issuer).select_related("user")
    return {row.uid: row.user for row in rows.prefetch_related("user__memberships__tenant")}


def subject_of(user: User, provider: Source) -> str | None:
    """Return the person's subject there; None if they are not connected."""
    found = SocialAccount.objects.filter(user=user, provider=provider.issuer).order_by("pk")
    subject: str | None = found.values_list("uid", flat=True).first()
    return subject


def knows_password(user: User) -> bool:
    """Return True if the person has a password to be asked for: Berth's, or the one of the LDAP directory."""
    return user.has_usable_password() or (settings.LDAP is not None and is_connected(user, settings.LDAP))


def is_connected(user: User, provider: Source) -> bool:
    return bool(SocialAccount.objects.filter(user=user, provider=provider.issuer).exists())


def _account(provider: Source, claims: dict[str, Any]) -> Any:
    found = SocialAccount.objects.filter(provider=provider.issuer, uid=_subject(claims))
    return found.select_related("user").first()


def _connect(user: User, provider: Source, claims: dict[str, Any]) -> None:
    SocialAccount.objects.create(user=user, provider=provider.issuer, uid=_subject(claims))
    audit.record(Actor(user), "sign-on.connect", target=user, data={"issuer": provider.issuer})


def _subject(claims: dict[str, Any]) -> str:
    subject = str(claims["sub"])
    return subject if len(subject) <= SUBJECT_LENGTH else hashlib.sha256(subject.encode()).hexdigest()


def _awaited(provider: Source, claims: dict[str, Any]) -> User | None:
    return _made_for_sign_on(provider, claims) or _by_email(provider, claims)


def _made_for_sign_on(provider: Source, claims: dict[str, Any]) -> User | None:
    """Find an unused account without a password, which an admin made for sign-on. If it has an e-mail address, the
    provider must vouch for the same address; an admin's account must have one. Without an address, the provider's user
    name must be exactly the same: anybody could choose a display name, or one that becomes the same in ASCII."""
    unused = User.objects.filter(
        username__iexact=safe_username(claims),
        last_login=None,
        service_of=None,
        socialaccount=None,
        tokens=None,
        ssh_keys=None,
    )
    user = locked(unused).first()
    if user is None or user.has_usable_password():
        return None
    if user.email or user.is_staff:
        told, awaited = _email(claims) if _is_verified(claims) else "", user.email
    else:
        told, awaited = str(claims.get("preferred_username") or ""), user.username
    if not told or told.casefold() != awaited.casefold():
        return None
    _connect(user, provider, claims)
    return user


def _by_email(provider: Source, claims: dict[str, Any]) -> User | None:
    """Find the account with the same e-mail address, if the admins trust the provider with that. Never an admin's
    account. The account's old password stops working."""
    email = _email(claims)
    if not provider.link_by_email or not email or not _is_verified(claims):
        return None
    people = list(locked(User.objects.filter(email__iexact=email, is_staff=False))[:2])
    if len(people) != 1 or is_connected(people[0], provider):
        return None
    user = people[0]
    user.set_unusable_password()
    user.save(update_fields=["password"])
    _connect(user, provider, claims)
    return user


def _create(provider: Source, claims: dict[str, Any]) -> User:
    username = safe_username(claims)
    taken = Conflict(
        "username_taken",
        _("There is an account “%(username)s” here already, and it is not connected with %(name)s.")
        % {"username": username, "name": provider.name},
        _("If it is yours, sign in with its password and connect it in your profile. If not, ask an admin."),
    )
    if User.objects.filter(username__iexact=username).exists():
        raise taken
    try:
        with transaction.atomic():
            user = User.objects.create_user(username, _email(claims), language=_language(claims))
    except IntegrityError:  # another request made it at this moment
        raise taken from None
    data = {"username": user.username, "issuer": provider.issuer}
    audit.record(None, "user.create", target=user, data=data)
    _connect(user, provider, claims)
    return user


def safe_username(claims: dict[str, Any]) -> str:
    """Return the name at the provider in ASCII: no two names look the same, and paths and labels can hold it."""
    for claim in ("preferred_username", "email", "name"):
        text = unicodedata.normalize("NFKD", str(claims.get(claim) or ""))
        plain = text.encode("ascii", "ignore").decode()
        name = re.sub(r"[^A-Za-z0-9._@+-]+", "-", plain)[:NAME_LENGTH].strip("-._@+")
        if name:
            return name
    return f"person-{hashlib.sha256(_subject(claims).encode()).hexdigest()[:8]}"


def _take_over_details(user: User, claims: dict[str, Any]) -> None:
    """Take names and e-mail address from the provider at each sign-in."""
    changed = _new_details(user, claims)
    for name, text in changed.items():
        setattr(user, name, text)
    if changed:
        user.save(update_fields=list(changed))


def _new_details(user: User, claims: dict[str, Any]) -> dict[str, str]:
    """Return the fields that differ from what the provider says. What it leaves out stays."""
    details = {
        "first_name": str(claims.get("given_name") or "")[:150],
        "last_name": str(claims.get("family_name") or "")[:150],
        "email": _email(claims),
    }
    return {name: text for name, text in details.items() if text and text != getattr(user, name)}


def _email(claims: dict[str, Any]) -> str:
    """Return the e-mail address; empty if the provider calls it unverified, because owners add people by address."""
    if _is_verified(claims) is False:
        return ""
    email = str(claims.get("email") or "")
    try:
        validate_email(email)
    except ValidationError:
        return ""
    return email if len(email) <= 254 else ""


def _is_verified(claims: dict[str, Any]) -> bool | None:
    """Return None if the provider does not say. Some providers send a string instead of a boolean."""
    if "email_verified" not in claims:
        return None
    return str(claims["email_verified"]).lower() == "true"


def _language(claims: dict[str, Any]) -> str:
    locale = str(claims.get("locale") or "").replace("_", "-").lower()
    try:
        language = get_supported_language_variant(locale)
    except LookupError:
        return ""
    return language if language in dict(settings.LANGUAGES) else ""


def _require_groups_told(provider: Source, claims: dict[str, Any]) -> None:
    """Refuse if the provider sends only a link to the groups, as some do for very many: it must not count as none."""
    elsewhere = claims.get("_claim_names")
    if provider.grants and isinstance(elsewhere, dict) and provider.groups_claim in elsewhere:
        raise NotAllowed(
            "too_many_groups",
            _("%(name)s did not send your groups, because there are too many.") % {"name": provider.name},
            _("Tell an admin: the provider must send only the groups that Berth needs."),
        )
