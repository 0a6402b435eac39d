"""Findings of `manage.py doctor` about the LDAP directory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import islice

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.directory import asking, entries
from accounts.directory.asking import Away
from accounts.directory.configuration import Directory
from accounts.directory.models import DirectorySync

LOOKED_AT = 1000
LATE_AFTER = timedelta(hours=26)


@dataclass(frozen=True)
class Finding:
    """`level` is that of the doctor's other findings: ok, warn or fail."""

    level: str
    message: str
    hint: str = ""


def examined(directory: Directory) -> Iterator[Finding]:
    """Yield whether it answers, who and which groups it shows, and when the last sync was."""
    try:
        yield from _of_directory(directory)
    except Away as away:
        yield Finding("fail", _("The directory does not answer: %(why)s.") % {"why": away}, _hint_of_answer())
    yield _of_sync()


def _hint_of_answer() -> str:
    return _(
        "Check BERTH_LDAP_URL, BERTH_LDAP_CA_FILE, BERTH_LDAP_BIND_DN and its password, and the way there."
    )


def _of_directory(directory: Directory) -> Iterator[Finding]:
    with asking.connected(directory) as connection:
        server = f"{connection.server.host}:{connection.server.port}"
        yield Finding("ok", _("%(server)s answers.") % {"server": server})
        people = list(islice(asking.everybody(connection, directory), LOOKED_AT))
        if not people:
            hint = _(
                "Check BERTH_LDAP_PEOPLE_BASE, BERTH_LDAP_PEOPLE_FILTER and the rights of BERTH_LDAP_BIND_DN."
            )
            yield Finding("fail", _("The filter finds nobody."), hint)
            return
        count = f"{len(people)}+" if len(people) == LOOKED_AT else str(len(people))
        yield Finding("ok", _("The filter finds people: %(count)s.") % {"count": count})
        for attribute in (directory.name_attribute, directory.id_attribute):
            lacking = sum(not one.values.get(attribute.lower()) for one in people)
            if lacking:
                text = _("%(count)s of %(all)s people have no %(attribute)s: they cannot sign in.")
                values = {"count": lacking, "all": len(people), "attribute": attribute}
                hint = _(
                    "Check BERTH_LDAP_NAME_ATTRIBUTE and BERTH_LDAP_ID_ATTRIBUTE, and the right to read them."
                )
                yield Finding("fail" if lacking == len(people) else "warn", text % values, hint)
        if directory.grants:
            yield from _of_groups(directory, asking.named_groups(connection, directory), people)


def _of_groups(directory: Directory, found: set[str], people: list[entries.Entry]) -> Iterator[Finding]:
    wanted = {grant.group for grant in directory.grants}
    if found:
        yield Finding("ok", _("Groups found: %(names)s.") % {"names": ", ".join(sorted(found))})
    if missing := wanted - found:
        text = _("Groups not found below BERTH_LDAP_GROUP_BASE: %(names)s.") % {
            "names": ", ".join(sorted(missing))
        }
        yield Finding(
            "warn" if found else "fail", text, _("Check BERTH_LDAP_GROUPS and BERTH_LDAP_GROUP_BASE.")
        )
    if not directory.group_filter and not any(one.values.get("memberof") for one in people):
        hint = _(
            "If the directory does not keep memberOf, set BERTH_LDAP_GROUP_FILTER, such as (member={dn})."
        )
        yield Finding("warn", _("Nobody has the attribute memberOf, so nobody has a role by a group."), hint)


def _of_sync() -> Finding:
    row = DirectorySync.objects.filter(pk=1).first()
    hint = _("Run manage.py sync_directory --dry-run to see what it would do.")
    if row is None:
        return Finding("warn", _("No sync has run yet. The worker runs one each night."), hint)
    moment = f"{row.tried_at:%Y-%m-%d %H:%M} UTC"
    text = _("Last sync: %(moment)s, %(count)s accounts.") % {"moment": moment, "count": row.people}
    if row.outcome == DirectorySync.Outcome.FAILED and row.people:
        return Finding("fail", text, row.reason)  # it failed on some people, and is done for the others
    if row.outcome != DirectorySync.Outcome.DONE:
        return Finding(
            "fail",
            _("The sync of %(moment)s changed nothing: %(why)s.") % {"moment": moment, "why": row.reason},
            hint,
        )
    if timezone.now() - row.tried_at > LATE_AFTER:
        return Finding("warn", text, _("The worker should run one each night: is it running?"))
    return Finding("ok", text)
