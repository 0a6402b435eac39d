"""Checks of what a person asks for, the same for a workspace and a job: name, environment, repository, priority."""

from __future__ import annotations

import re
from collections.abc import Mapping

from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Invalid
from clusters.site import environment

LONGEST_NAME = 63
NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._ -]{0,61}[A-Za-z0-9])?")
REPOSITORY = re.compile(r"(?:https?://|ssh://|git://|[A-Za-z0-9._-]+@[A-Za-z0-9.-]+:)[^\s'\"\\]+")


def check_name(name: str) -> dict[str, list[str]]:
    if NAME.fullmatch(name):
        return {}
    return {
        "name": [
            _("Use 1 to 63 letters, digits, spaces, dots, dashes; begin and end with a letter or digit.")
        ]
    }


def check_repository(address: str) -> dict[str, list[str]]:
    if not address or REPOSITORY.fullmatch(address):
        return {}
    return {"repository": [_("Give an address that git can clone, as https://host/group/project.git")]}


def check_env(
    env: Mapping[str, str], secret_env: Mapping[str, str], also_reserved: re.Pattern[str] | None = None
) -> dict[str, list[str]]:
    """Faults by field: malformed or reserved names, a name twice, too much."""
    faults: dict[str, list[str]] = {}
    for where, values in (("env", env), ("secret_env", secret_env)):
        texts = environment.faults(values, also_reserved)
        if texts:
            faults[where] = texts
    if twice := sorted(set(env) & set(secret_env)):
        faults.setdefault("secret_env", []).append(
            _("%(names)s is in both env and secret_env. Keep one.") % {"names": ", ".join(twice)}
        )
    return faults


def refuse_unfair(actor: Actor, priority: int) -> None:
    """Refuse a priority above 0 except from admins: it would jump the queue of all tenants."""
    if priority > 0 and not actor.is_admin:
        text = _("Only admins may give a priority above 0.")
        raise Invalid("priority_too_high", text, _("Use 0 or less."), fields={"priority": [text]})
