"""Texts about a finding: what it is, what differs, what each action would do or why it is refused."""

from __future__ import annotations

import shlex

from django.utils.dateparse import parse_datetime
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from jobs import naming
from monitoring.models import Finding, What
from workloads.pods.drivers import PREFIX

from .compare import FENCES

CLAIM = "PersistentVolumeClaim"
MOST_IN_SHORT = 6


def sentence(finding: Finding) -> str:
    facts = {"object": str(finding)}
    if finding.what == What.UNWANTED:
        return _("The cluster has %(object)s, which Berth does not need.") % facts
    if finding.what == What.MISSING:
        return _("Berth needs %(object)s, but the cluster does not have it.") % facts
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
    label = path.removeprefix("metadata.labels.")
    return label if label != path else path.rpartition(".")[2]


def _field(path: str, by: str, at: str, value: str | None) -> str:
    facts = {"path": path, "by": by, "at": _moment(at), "value": value}
    if not by:
        return _("%(path)s was removed.") % facts
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
    workload = finding.workspace or finding.job
    if workload is not None:
        facts = {"name": workload.name, "user": workload.owner.username, "tenant": workload.tenant}
        return _("%(name)s of %(user)s in %(tenant)s") % facts
    return finding.tenant_slug or "–"


def deleted(finding: Finding, *, with_data: bool) -> tuple[str, ...]:
    if with_data:
        return (_("The claim and the data on its volume are deleted for good."),)
    if finding.kind == CLAIM:
        kept = _("The claim is deleted. Its volume is set to Retain first, so the data stays on it.")
        return (kept, _("After that the volume must be found by hand."))
    if finding.kind in ("StatefulSet", "Job"):
        return (_("It is deleted with everything that depends on it; its pod ends, if it has one."),)
    if finding.kind == "Pod":
        return (_("It is deleted; what runs in it ends."),)
    return (_("It is deleted."),)


def accepted(finding: Finding) -> tuple[str, ...]:
    stays = _("It stays as it is, and is listed again only when it changes again.")
    return (*what_differs(finding), stays)


def recreated(finding: Finding) -> tuple[str, ...]:
    if finding.what == What.MISSING:
        return (_("It is created again. Running workspaces are not affected."),)
    if finding.kind == "Pod" and any(field["by"] for field in finding.data.get("fields", [])):
        return (
            _("The workspace is restarted: a pod cannot be fixed while it runs."),
            _(
                "Files are kept. What is only in memory is lost: kernels, unsaved notebooks, running programs."
            ),
        )
    first = (*what_differs(finding), _("These changes are reverted. Running workspaces are not affected."))
    if finding.kind == "Service":
        return (*first, _("If its type changes, its address may change too, and open connections end."))
    if finding.kind == "ConfigMap":
        return (
            *what_differs(finding),
            _(
                "It is deleted. The next start that needs it creates it again. Running workspaces are not affected."
            ),
        )
    if finding.kind == "Secret":
        return (*first, _("Programs that already read it see the change after a restart."))
    return first


def advice(finding: Finding) -> str:
    """Return the command to run by hand, where Berth has no right to act."""
    if finding.what == What.UNWANTED and belongs_to_a_tenant(finding):
        return by_hand(finding)
    return ""


# --- Refusals: why an action makes no sense for a finding; "" if it does


def why_not_delete(finding: Finding, *, with_data: bool = False) -> str:
    if finding.what != What.UNWANTED:
        return _("Berth needs it.")
    if belongs_to_a_tenant(finding):
        return _(
            "Berth has no right to delete what belongs to a whole tenant. If you are sure: %(command)s"
        ) % {"command": by_hand(finding)}
    if with_data and (finding.kind != CLAIM or finding.name.startswith(PREFIX)):
        return _("It has no data: use “Delete, keep data”.")
    return ""


def belongs_to_a_tenant(finding: Finding) -> bool:
    """Return True for a kind that Berth keeps for a whole tenant, but for what it made for one job."""
    return finding.kind == "Namespace" or (finding.kind in FENCES and not naming.named_in(finding.name))


def by_hand(finding: Finding) -> str:
    within = ["--namespace", finding.namespace] if finding.namespace else []
    return shlex.join(["kubectl", "delete", finding.kind.lower(), finding.name, *within])


def why_not_accept(finding: Finding) -> str:
    if finding.what != What.CHANGED:
        return _("Only what somebody changed can be accepted as it is.")
    return _("It is accepted already.") if finding.accepted_at else ""


def why_not_recreate(finding: Finding) -> str:
    if finding.what not in (What.MISSING, What.CHANGED):
        return _("Berth does not need it.")
    if finding.kind != CLAIM:
        return ""
    if finding.what == What.CHANGED:
        return _("It contains data and cannot be made smaller. Accept it as it is.")
    return _("The next start of the workspace binds the kept volume again automatically.")
