"""Texts about a finding: what it is, what differs, and what each action would do. Made when they are read."""

from __future__ import annotations

from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from monitoring.models import Finding, What

from .compare import FENCES
from .possible import CLAIM, by_hand

MOST_IN_SHORT = 6


def sentence(finding: Finding) -> str:
    facts = {"object": str(finding)}
    if finding.what == What.UNWANTED:
        return _("The cluster has %(object)s, and no row of Berth wants it.") % facts
    if finding.what == What.MISSING:
        return _("A row of Berth wants %(object)s, and the cluster does not have it.") % facts
    if finding.what == What.KEPT:
        return _("%(object)s holds what was kept of a deleted workspace.") % facts
    return _("Somebody changed %(object)s.") % facts


def what_differs(finding: Finding) -> list[str]:
    """Return one sentence for each field that others changed."""
    return [_field(**field) for field in finding.data.get("fields", [])]


def in_short(finding: Finding) -> str:
    """Return the changed fields and who set them, for a list: image (kubectl-edit)."""
    told = {
        f"{last(field['path'])} ({field['by']})" if field["by"] else last(field["path"])
        for field in finding.data.get("fields", [])
    }
    shown = sorted(told)[:MOST_IN_SHORT]
    return ", ".join([*shown, "…"] if len(told) > MOST_IN_SHORT else shown) or "–"


def last(path: str) -> str:
    """Return the last part of a path; labels have dots of their own."""
    return (
        path.removeprefix("metadata.labels.")
        if path.startswith("metadata.labels.")
        else path.rpartition(".")[2]
    )


def _field(path: str, by: str, at: str, value: str | None) -> str:
    facts = {"path": path, "by": by, "at": _moment(at), "value": value}
    if not by:
        return _("%(path)s was taken away.") % facts
    if value is None:
        return _("%(by)s set %(path)s on %(at)s.") % facts
    return _("%(by)s set %(path)s to %(value)s on %(at)s.") % facts


def _moment(at: str) -> str:
    """Return the time as people write it, or the raw text if it is no date: any writer of the object can set it."""
    try:
        moment = parse_datetime(at)
        return date_format(localtime(moment), "DATETIME_FORMAT") if moment else at
    except (ValueError, OverflowError):
        return at


def whose(finding: Finding) -> str:
    workspace = finding.workspace
    if workspace is not None:
        facts = {"name": workspace.name, "user": workspace.owner.username, "tenant": workspace.tenant}
        return _("%(name)s of %(user)s in %(tenant)s") % facts
    return finding.tenant_slug or "–"


def deleted(finding: Finding, *, with_data: bool) -> tuple[str, ...]:
    if with_data:
        return (_("The claim and the data on its volume are deleted for good."),)
    if finding.kind == CLAIM:
        kept = _("The claim is deleted. Its volume is set to Retain first, so the data stays on it.")
        return (kept, _("Nobody can hand the workspace back after that: the volume is found by hand alone."))
    if finding.kind == "StatefulSet":
        return (_("It is deleted with all that hangs on it; its pod, if it has one, ends."),)
    if finding.kind == "Pod":
        return (_("It is deleted; what runs in it ends."),)
    return (_("It is deleted."),)


def accepted(finding: Finding) -> tuple[str, ...]:
    stays = _("It stays as it is, and is a finding again only when it is changed once more.")
    return (*what_differs(finding), stays)


def handed_back(finding: Finding) -> tuple[str, ...]:
    return (
        _("The workspace comes back to its person, stopped, with its volumes, settings and host key."),
        _("Its person reads in its story who handed it back."),
    )


def recreated(finding: Finding) -> tuple[str, ...]:
    if finding.what == What.MISSING:
        return (_("It is made as it should be. What runs goes on."),)
    if finding.kind == "Pod" and any(field["by"] for field in finding.data.get("fields", [])):
        return (
            _("The workspace is restarted: a pod cannot be mended while it runs."),
            _(
                "Files are kept. What is only in memory is lost: kernels, unsaved notebooks, running programs."
            ),
        )
    first = (*what_differs(finding), _("All of that is taken back. What runs goes on."))
    if finding.kind == "Service":
        return (*first, _("Where its type becomes another, its address may too, and open connections end."))
    if finding.kind in ("Secret", "ConfigMap"):
        return (*first, _("Programs that have read it already read it anew after a restart."))
    if finding.kind == "StatefulSet":
        return (*first, _("Its pod follows its template at the next start, and not before."))
    return first


def advice(finding: Finding) -> str:
    """Return the command to run by hand, where Berth has no right to act."""
    if finding.what == What.UNWANTED and finding.kind in ("Namespace", *FENCES):
        return by_hand(finding)
    return ""
