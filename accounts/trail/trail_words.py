"""Audit entries as sentences in the reader's language. The entry itself keeps codes and names only."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext

from accounts.models import AuditEntry, Role

KINDS = {
    "sign-in": gettext_lazy("Sign-ins"),
    "member": gettext_lazy("Members and roles"),
    "user": gettext_lazy("People"),
    "ssh_key": gettext_lazy("SSH keys"),
    "token": gettext_lazy("API tokens"),
    "agent_token": gettext_lazy("Tokens of agents"),
    "workspace": gettext_lazy("Workspaces"),
    "tenant": gettext_lazy("Tenants"),
    "quota": gettext_lazy("Quotas"),
    "budget": gettext_lazy("Budgets"),
    "pool": gettext_lazy("Pools"),
    "booking": gettext_lazy("Bookings"),
    "cluster": gettext_lazy("Clusters"),
}

DONE = {
    "sign-in": gettext_lazy("%(actor)s signed in."),
    "sign-out": gettext_lazy("%(actor)s signed out."),
    "user.sign-out-everywhere": gettext_lazy("%(actor)s signed out in every browser."),
    "user.activate": gettext_lazy("%(actor)s activated %(username)s again."),
    "user.deactivate": gettext_lazy("%(actor)s deactivated %(username)s."),
    "user.create": gettext_lazy("%(actor)s made an account for %(username)s."),
    "user.change": gettext_lazy("%(actor)s changed the account of %(name)s."),
    "user.delete": gettext_lazy("%(actor)s deleted the account of %(username)s."),
    "user.make_admin": gettext_lazy("%(actor)s made %(username)s an admin."),
    "user.unmake_admin": gettext_lazy("%(actor)s took the rights of an admin from %(username)s."),
    "user.choose_password": gettext_lazy("%(actor)s chose another password."),
    "user.set_password": gettext_lazy("%(actor)s set a new password for %(username)s."),
    "sign-on.connect": gettext_lazy("%(actor)s connected the account with the group sign-on."),
    "second-factor.on": gettext_lazy("%(actor)s turned on a second factor."),
    "second-factor.off": gettext_lazy("%(actor)s turned off the second factor."),
    "second-factor.reset": gettext_lazy("%(actor)s took away the second factor of %(username)s."),
    "second-factor.recovery-codes": gettext_lazy("%(actor)s made new recovery codes."),
    "second-factor.recovery-code-used": gettext_lazy("%(actor)s signed in with a recovery code."),
    "member.add": gettext_lazy("%(actor)s let %(username)s in, as %(role)s."),
    "member.change": gettext_lazy("%(actor)s gave %(username)s the role %(role)s."),
    "member.remove": gettext_lazy("%(actor)s took %(username)s out."),
    "ssh_key.add": gettext_lazy("%(actor)s added the SSH key “%(name)s” (%(fingerprint)s)."),
    "ssh_key.remove": gettext_lazy("%(actor)s removed the SSH key “%(name)s” (%(fingerprint)s)."),
    "token.create": gettext_lazy(
        "%(actor)s made the API token “%(name)s” for %(user)s: %(scopes)s, %(days)s days."
    ),
    "token.revoke": gettext_lazy("%(actor)s revoked the API token “%(name)s”."),
    "agent_token.create": gettext_lazy("%(actor)s made the token “%(name)s” for the agents of %(cluster)s."),
    "agent_token.revoke": gettext_lazy(
        "%(actor)s revoked the token “%(name)s” of the agents of %(cluster)s."
    ),
    "tenant.create": gettext_lazy("%(actor)s made the tenant “%(name)s”."),
    "tenant.change": gettext_lazy("%(actor)s changed the tenant “%(name)s”."),
    "workspace.launch": gettext_lazy("%(actor)s launched the workspace “%(name)s”."),
    "workspace.start": gettext_lazy("%(actor)s started the workspace “%(name)s”."),
    "workspace.stop": gettext_lazy("%(actor)s stopped the workspace “%(name)s”."),
    "workspace.restart": gettext_lazy("%(actor)s restarted the workspace “%(name)s”."),
    "workspace.delete": gettext_lazy("%(actor)s deleted the workspace “%(name)s”."),
    "workspace.extend": gettext_lazy("%(actor)s extended the lifetime of the workspace “%(name)s”."),
    "workspace.change": gettext_lazy("%(actor)s changed the workspace “%(name)s”."),
    "workspace.clone": gettext_lazy("%(actor)s copied the settings of the workspace “%(name)s”."),
    "workspace.ssh": gettext_lazy("%(actor)s opened the workspace “%(name)s” by SSH."),
    "workspace.hand_back": gettext_lazy("%(actor)s handed back the deleted workspace “%(name)s”."),
    "drift.delete": gettext_lazy("%(actor)s deleted %(name)s in %(cluster)s, which no row wanted."),
    "drift.delete_data": gettext_lazy("%(actor)s deleted %(name)s in %(cluster)s with the data on it."),
    "drift.accept": gettext_lazy("%(actor)s accepted %(name)s in %(cluster)s as somebody changed it."),
    "drift.hand_back": gettext_lazy("%(actor)s gave %(name)s in %(cluster)s back to its person."),
    "drift.recreate": gettext_lazy("%(actor)s had %(name)s in %(cluster)s made again."),
    "drift.look": gettext_lazy("%(actor)s had the clusters looked at for drift."),
    "quota.change": gettext_lazy("%(actor)s changed the quota “%(name)s”."),
    "quota.create": gettext_lazy("%(actor)s gave the quota “%(name)s”."),
    "quota.delete": gettext_lazy("%(actor)s took away the quota “%(name)s”."),
    "budget.create": gettext_lazy("%(actor)s gave the budget “%(name)s”."),
    "budget.change": gettext_lazy("%(actor)s changed the budget “%(name)s”."),
    "budget.delete": gettext_lazy("%(actor)s took away the budget “%(name)s”."),
    "budget.add_hours": gettext_lazy("%(actor)s added %(gpu_hours)s GPU-hours to the budget “%(name)s”."),
    "pool.open": gettext_lazy("%(actor)s put the pool “%(name)s” into use."),
    "pool.close": gettext_lazy("%(actor)s took the pool “%(name)s” out of use."),
    "booking.create": gettext_lazy("%(actor)s booked GPUs of %(pool)s: “%(name)s”."),
    "booking.change": gettext_lazy("%(actor)s changed the booking “%(name)s” of GPUs of %(pool)s."),
    "booking.cancel": gettext_lazy("%(actor)s cancelled the booking “%(name)s” of GPUs of %(pool)s."),
    "pool.create": gettext_lazy("%(actor)s made the pool “%(name)s”."),
    "pool.change": gettext_lazy("%(actor)s changed the pool “%(name)s”."),
    "image.create": gettext_lazy("%(actor)s added the image “%(name)s”."),
    "image.change": gettext_lazy("%(actor)s changed the image “%(name)s”."),
    "claim.confirm_end": gettext_lazy("%(actor)s confirmed that what ran on %(node)s has ended."),
    "notices.choose": gettext_lazy("%(actor)s chose what to be told of."),
    "notices.unsubscribe": gettext_lazy("%(actor)s asked for no more mail of a kind."),
    "cluster.create": gettext_lazy("%(actor)s added the cluster “%(name)s”."),
    "cluster.change": gettext_lazy("%(actor)s changed the cluster “%(name)s”."),
    "cluster.validate": gettext_lazy("%(actor)s had the GPUs of the node %(node)s tested (%(pool)s)."),
    "cluster.overrule_validation": gettext_lazy(
        "%(actor)s said that the node %(node)s may be used although its test failed."
    ),
    "cluster.cordon": gettext_lazy("%(actor)s closed the node %(node)s for new work."),
    "cluster.uncordon": gettext_lazy("%(actor)s opened the node %(node)s again."),
    "cluster.drain": gettext_lazy("%(actor)s has the node %(node)s drained within %(minutes)s min."),
    "cluster.trust_gpu": gettext_lazy("%(actor)s put the GPU %(gpu)s of the node %(node)s into use again."),
    "cluster.forget_agent": gettext_lazy("%(actor)s had the silent agent of the node %(node)s forgotten."),
    "unknowncause.dismiss": gettext_lazy("%(actor)s dismissed a message without an explanation: %(text)s"),
    "cluster.test": gettext_lazy("%(actor)s tested the connection to the cluster “%(name)s”."),
}


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
