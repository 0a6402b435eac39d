"""People's passwords. Each person chooses their own; one that an admin made works once, to choose another."""

from __future__ import annotations

import secrets
import string

from django.contrib.auth.password_validation import MinimumLengthValidator, validate_password
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import signals
from accounts.access import Actor
from accounts.errors import Invalid
from accounts.models import User
from accounts.trail import audit

FIELD = "new_password1"
LETTERS = string.ascii_letters.translate(str.maketrans("", "", "lIO")) + "23456789"


def new_password() -> str:
    """Return a random first password of 100 bits, in groups that can be read out."""
    return "-".join("".join(secrets.choice(LETTERS) for _letter in range(6)) for _group in range(3))


class LongEnough(MinimumLengthValidator):
    def get_error_message(self) -> str:
        """Return Django's own sentence, from our catalogues: Django's Chinese one has another sentence here."""
        text = ngettext(
            "This password is too short. It must contain at least %d character.",
            "This password is too short. It must contain at least %d characters.",
            self.min_length,
        )
        return text % self.min_length


def choose(user: User, password: str) -> None:
    """Set the person's new password, or raise Invalid. It ends their sessions; the caller may keep the present one."""
    try:
        validate_password(password, user)
    except ValidationError as error:
        raise _refused("password_too_weak", *error.messages) from None
    if user.check_password(password):
        raise _refused("password_same", _("This is your current password. Choose another one."))
    with transaction.atomic():
        user.set_password(password)
        user.password_is_first = False
        user.save(update_fields=["password", "password_is_first"])
        audit.record(Actor(user), "user.choose_password", target=user)
        signals.send_access_changed(user)


def record_password_set_by_admin(actor: Actor, user: User) -> None:
    """Record that an admin set a password: sessions end, and it works once, unless it is the admin's own."""
    with transaction.atomic():
        User.objects.filter(pk=user.pk).update(password_is_first=user != actor.user)
        audit.record(actor, "user.set_password", target=user, data={"username": user.username})
        signals.send_access_changed(user)


def _refused(code: str, *texts: str) -> Invalid:
    return Invalid(code, texts[0], fields={FIELD: texts})
