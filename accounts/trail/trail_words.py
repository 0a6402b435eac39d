"""Audit entries as sentences in the reader's language. The entry itself keeps codes and names only.

Each room registers the words of its own actions when it starts (`register`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from accounts.models import AuditEntry, Role

Words = dict[str, Promise]

KINDS: Words = {
    "sign-in": gettext_lazy("Sign-ins"),
    "member": gettext_lazy("Members and roles"),
    "user": gettext_lazy("People"),
    "ssh_key": gettext_lazy("SSH keys"),
    "token": gettext_lazy("API tokens"),
    "device": gettext_lazy("Sign-ins of terminals"),
    "tenant": gettext_lazy("Tenants"),
    "service_account": gettext_lazy("Service accounts"),
    "directory": gettext_lazy("LDAP directory"),
    "trail": gettext_lazy("Audit trail"),
    "announcement": gettext_lazy("Announcements"),
}

DONE: Words = {
    "sign-in": gettext_lazy("%(actor)s signed in."),
    "sign-out": gettext_lazy("%(actor)s signed out."),
    "user.sign-out-everywhere": gettext_lazy("%(actor)s signed out in every browser."),
    "user.activate": gettext_lazy("%(actor)s activated %(username)s again."),
    "user.deactivate": gettext_lazy("%(actor)s deactivated %(username)s."),
    "user.create": gettext_lazy("%(actor)s created an account for %(username)s."),
    "user.change": gettext_lazy("%(actor)s changed the account of %(name)s."),
    "user.delete": gettext_lazy("%(actor)s deleted the account of %(username)s."),
    "user.make_admin": gettext_lazy("%(actor)s made %(username)s an admin."),
    "user.unmake_admin": gettext_lazy("%(actor)s removed admin rights from %(username)s."),
    "user.choose_password": gettext_lazy("%(actor)s changed their password."),
    "user.set_password": gettext_lazy("%(actor)s set a new password for %(username)s."),
    "sign-on.connect": gettext_lazy("%(actor)s connected the account with the group sign-on."),
    "second-factor.on": gettext_lazy("%(actor)s turned on a second factor."),
    "second-factor.off": gettext_lazy("%(actor)s turned off the second factor."),
    "second-factor.reset": gettext_lazy("%(actor)s reset the second factor of %(username)s."),
    "second-factor.recovery-codes": gettext_lazy("%(actor)s created new recovery codes."),
    "second-factor.recovery-code-used": gettext_lazy("%(actor)s signed in with a recovery code."),
    "member.add": gettext_lazy("%(actor)s added %(username)s as %(role)s."),
    "member.change": gettext_lazy("%(actor)s gave %(username)s the role %(role)s."),
    "member.remove": gettext_lazy("%(actor)s removed %(username)s."),
    "ssh_key.add": gettext_lazy("%(actor)s added the SSH key “%(name)s” (%(fingerprint)s)."),
    "ssh_key.remove": gettext_lazy("%(actor)s removed the SSH key “%(name)s” (%(fingerprint)s)."),
    "token.create": gettext_lazy(
        "%(actor)s created the API token “%(name)s” for %(user)s: %(scopes)s, %(days)s days."
    ),
    "device.allow": gettext_lazy("%(actor)s let “%(name)s” (%(address)s) sign in with a code."),
    "device.refuse": gettext_lazy("%(actor)s refused “%(name)s” (%(address)s), which asked to sign in."),
    "token.revoke": gettext_lazy("%(actor)s revoked the API token “%(name)s”."),
    "service_account.create": gettext_lazy("%(actor)s created the service account %(username)s as %(role)s."),
    "service_account.adopt": gettext_lazy("%(actor)s took over the service account %(username)s."),
    "service_account.delete": gettext_lazy("%(actor)s deleted the service account %(username)s."),
    "directory.sync": gettext_lazy(
        "%(actor)s compared %(people)s accounts with %(name)s: %(left)s deactivated, %(returned)s activated again, "
        "%(changed)s changed."
    ),
    "tenant.create": gettext_lazy("%(actor)s created the tenant “%(name)s”."),
    "tenant.change": gettext_lazy("%(actor)s changed the tenant “%(name)s”."),
    "trail.forgotten": gettext_lazy(
        "%(actor)s deleted %(entries)s audit entries from before %(until)s: the trail is kept for %(months)s months."
    ),
    "announcement.create": gettext_lazy("%(actor)s announced: %(name)s"),
    "announcement.change": gettext_lazy("%(actor)s changed the announcement: %(name)s"),
    "announcement.end": gettext_lazy("%(actor)s ended the announcement: %(name)s"),
    "announcement.delete": gettext_lazy("%(actor)s deleted the announcement: %(name)s"),
    "notice.send_again": gettext_lazy("%(actor)s sent a mail to %(username)s again."),
    "notices.choose": gettext_lazy("%(actor)s changed their notification settings."),
    "notices.unsubscribe": gettext_lazy("%(actor)s unsubscribed from a kind of mail."),
}


def register(kinds: Mapping[str, Promise], done: Mapping[str, Promise]) -> None:
    """Add a room's kinds of entries, for the filter, and the sentences of its actions."""
    KINDS.update(kinds)
    DONE.update(done)


def sentence(entry: AuditEntry) -> str:
    """Return what happened, as a sentence. An action without its own sentence is named by its code."""
    known = _values(entry)
    if entry.outcome == AuditEntry.Outcome.REFUSED:
        if entry.action == "sign-in" and not entry.actor_name:
            return _("A sign-in was refused (%(code)s).") % known
        if entry.action == "sign-in":
            return _("A sign-in as %(actor)s was refused (%(code)s).") % (known | {"actor": entry.actor_name})
        if "path" in entry.data:
            return _("%(actor)s was refused at %(path)s (%(code)s).") % known
        return _("%(actor)s was refused: %(action)s (%(code)s).") % known
    words = DONE.get(entry.action)
    if words is None:
        return (
            _("%(actor)s did %(action)s: %(name)s.") % known
            if entry.data.get("name")
            else (_("%(actor)s did %(action)s.") % known)
        )
    return str(words) % known


def _values(entry: AuditEntry) -> dict[str, Any]:
    """Values that sentences can name. A value that an older entry does not have is a dash."""
    values: dict[str, Any] = defaultdict(lambda: "–", entry.data)
    values["actor"] = _subject(entry.actor_name)
    if entry.data.get("responsible"):
        values["actor"] = pgettext("who did it", "%(name)s (service account of %(responsible)s)") % {
            "name": entry.actor_name,
            "responsible": entry.data["responsible"],
        }
    values["action"] = entry.action
    if entry.target_kind == "user" and "name" in entry.data:  # entries from the admin's pages
        values.setdefault("username", entry.data["name"])
    if isinstance(values.get("scopes"), list):
        values["scopes"] = ", ".join(map(str, values["scopes"]))
    if values.get("role") in Role.values:
        values["role"] = Role(values["role"]).label
    return values


def _subject(name: str) -> str:
    """Return the actor as the subject of a sentence: languages with particles treat a person and Berth differently."""
    if not name:
        return pgettext("who did it", "Berth")
    return pgettext("who did it", "%(name)s") % {"name": name}
