"""Actions that make sense for a finding, or why not, in a sentence. Pure; the pages and the actions use the same."""

from __future__ import annotations

import shlex

from django.utils.translation import gettext as _

from monitoring.models import Finding, What
from workspaces.cluster.drivers import PREFIX

from .compare import FENCES

CLAIM = "PersistentVolumeClaim"


def why_not_delete(finding: Finding, *, with_data: bool = False) -> str:
    if finding.what not in (What.UNWANTED, What.KEPT):
        return _("Berth needs it.")
    if finding.kind in ("Namespace", *FENCES):
        return _(
            "Berth has no right to delete what belongs to a whole tenant. If you are sure: %(command)s"
        ) % {"command": by_hand(finding)}
    if with_data and (finding.kind != CLAIM or finding.name.startswith(PREFIX)):
        return _("It has no data: use “Delete, keep data”.")
    return ""


def by_hand(finding: Finding) -> str:
    within = ["--namespace", finding.namespace] if finding.namespace else []
    return shlex.join(["kubectl", "delete", finding.kind.lower(), finding.name, *within])


def why_not_accept(finding: Finding) -> str:
    if finding.what != What.CHANGED:
        return _("Only what somebody changed can be accepted as it is.")
    return _("It is accepted already.") if finding.accepted_at else ""


def why_not_hand_back(finding: Finding) -> str:
    if finding.what == What.KEPT and finding.workspace_id:
        return ""
    if finding.what == What.UNWANTED and finding.kind == CLAIM:
        return _("Berth has no record of its workspace, so it cannot be restored as one.")
    return _("It is no kept volume of a deleted workspace.")


def why_not_recreate(finding: Finding) -> str:
    if finding.what not in (What.MISSING, What.CHANGED):
        return _("Berth does not need it.")
    if finding.kind != CLAIM:
        return ""
    if finding.what == What.CHANGED:
        return _("It contains data and cannot be made smaller. Accept it as it is.")
    return _("The next start of the workspace binds the kept volume again automatically.")
