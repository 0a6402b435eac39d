"""Ways in which a new person signs in."""

from __future__ import annotations

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy


class Way(TextChoices):
    PASSWORD = "password", gettext_lazy("with a first password that Berth creates and shows you once")
    SIGN_ON = "sign-on", gettext_lazy("only with your organisation's sign-on (OpenID Connect or LDAP)")


WAYS = Way.choices
