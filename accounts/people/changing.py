"""Use cases of admins on accounts of people: create, change, set a first password."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from accounts import members, signals
from accounts.access import Actor, not_there
from accounts.credentials import passwords
from accounts.errors import Conflict, Invalid
from accounts.locks import locked
from accounts.models import User
from accounts.sign_on import second_factor
from accounts.trail import audit

DETAILS = ("first_name", "last_name", "email")


def everybody(actor: Actor) -> QuerySet[User]:
    """Return all people, for admins. Service accounts are no people."""
    actor.require_admin()
    return User.objects.filter(service_of=None).prefetch_related("memberships__tenant")


def get(actor: Actor, username: str) -> User:
    person = everybody(actor).filter(username=username).first()
    if person is None:
        raise not_there()
    return person


def create(actor: Actor, person: User, *, with_password: bool, by: str = "") -> str | None:
    """Save a new person. Return the first password, which is shown once; None if they use single sign-on alone."""
    actor.require_admin()
    password = passwords.new_password() if with_password else None
    person.set_password(password)
    person.password_is_first = with_password
    _check(person)
    try:
        with transaction.atomic():
            person.save(force_insert=True)
            data = {"name": person.username, "username": person.username, **({"by": by} if by else {})}
            audit.record(actor, "user.create", target=person, data=data)
    except IntegrityError:
        text = _("There is a person “%(name)s” already.") % {"name": person.username}
        hint = _("Choose another user name.")
        raise Conflict("person_exists", text, hint, fields={"username": [text]}) from None
    return password


def change(actor: Actor, username: str, wanted: dict[str, Any]) -> User:
    """Change names and address, `is_active` and `is_admin`: all that is wanted, or nothing."""
    with signals.access_changes_together():
        wanted_id = get(actor, username).pk
        pair = locked(User.objects.filter(pk__in={actor.user.pk, wanted_id}))
        person = next(row for row in pair if row.pk == wanted_id)
        before = {name: getattr(person, name) for name in DETAILS}
        after = {name: wanted[name] for name in DETAILS if name in wanted and wanted[name] != before[name]}
        for name, value in after.items():
            setattr(person, name, value)
        if after:
            _check(person)
            person.save(update_fields=list(after))
            data = {"name": username, "fields": sorted(after), "after": after}
            before = {name: before[name] for name in after}
            audit.record(actor, "user.change", target=person, data=data | {"before": before})
        if wanted.get("is_active", person.is_active) != person.is_active:
            members.set_active(actor, person, active=wanted["is_active"])
        if wanted.get("is_admin", person.is_staff) != person.is_staff:
            members.set_admin(actor, person, is_admin=wanted["is_admin"])
    return get(actor, username)


@transaction.atomic
def set_first_password(actor: Actor, username: str) -> str:
    """Set and return a new first password, which is shown once and valid for one sign-in. It ends their sessions."""
    person = get(actor, username)
    second_factor.require_reset(actor, person)
    password = passwords.new_password()
    person.set_password(password)
    person.save(update_fields=["password"])
    passwords.record_password_set_by_admin(actor, person)
    return password


def _check(person: User) -> None:
    try:
        person.full_clean(exclude=["password"], validate_unique=False, validate_constraints=False)
    except ValidationError as error:
        text = _("Some fields are not valid.")
        raise Invalid("invalid", text, _("Correct the named fields."), fields=error.message_dict) from None
