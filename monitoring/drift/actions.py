"""Actions of an admin on a finding: delete what no row wants, accept or hand back what may stay, recreate what should
exist. Each action looks at the cluster again and names the object by its uid: an object that was replaced meanwhile is
left alone. The audit line is written before the cluster is called, so that no action goes unrecorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict
from accounts.models import Scope, Tenant, User
from accounts.trail import audit
from clusters.api import Api
from clusters.connections import api_for
from clusters.errands import running
from clusters.errors import ClusterError, ClusterRefused
from clusters.models import Installation
from clusters.site import registries
from clusters.storage.volumes import set_reclaim
from jobs import naming
from monitoring.models import Finding, What
from quotas.namespaces import ensuring
from workspaces import enqueue
from workspaces.cluster.repair import restore_finalizer
from workspaces.models import Workspace
from workspaces.runs import admin_repair
from workspaces.state.live import RELATED

from . import looks, of_jobs
from .compare import FENCES, WAYS_IN, Key, judge
from .findings import digest_in
from .ownership import differences, removals
from .survey import check_against_other_rows, namespaces, other_claims, rows_of, thing_at
from .words import why_not_accept, why_not_delete, why_not_recreate


def do(verb: str, actor: Actor, finding: Finding) -> bool:
    """Do one of DOERS, in the worker if this is web: the look at the cluster before it needs an account, too."""
    asked = {"verb": verb, "finding_id": str(finding.pk), "user_id": str(actor.user.pk)}
    try:
        return bool(running.ask("monitoring.drift", **asked, address=audit.client_address.get()))
    except ClusterError as error:
        raise running.conflict(error) from None


def do_for(*, verb: str, finding_id: str, user_id: str, address: str | None) -> bool:
    """Do the errand of `do`."""
    token = audit.client_address.set(address)
    try:
        return DOERS[verb](Actor(User.objects.get(pk=user_id)), Finding.objects.get(pk=finding_id))
    finally:
        audit.client_address.reset(token)


def delete(actor: Actor, finding: Finding, *, with_data: bool = False) -> bool:
    """Delete an object that no row wants. The data of a PVC stays on its volume unless `with_data`."""
    verb = "delete_data" if with_data else "delete"
    with admin_action(actor, finding, verb, why_not_delete(finding, with_data=with_data)) as api:
        if finding.kind == "PersistentVolumeClaim":
            _delete_claim(actor, finding, api, with_data=with_data)
            return True
        api.delete(finding.kind, finding.namespace, finding.name, uid=finding.uid)
        _add_event(finding, "drift_deleted", by=actor.user.get_username())
    return True


def _delete_claim(actor: Actor, finding: Finding, api: Api, *, with_data: bool) -> None:
    claim = _there(finding, api)
    # A PVC that names a volume but is not bound does not have it: the volume may be another's.
    is_bound = claim.get("status", {}).get("phase") == "Bound"
    volume = claim["spec"].get("volumeName", "") if is_bound else ""
    if volume and with_data:
        set_reclaim(volume, "Delete", api)
        try:
            api.delete(finding.kind, finding.namespace, finding.name, uid=finding.uid)
        except ClusterRefused:
            set_reclaim(volume, "Retain", api)  # its data survives a later deletion of the PVC
            raise
    else:
        if volume:
            set_reclaim(volume, "Retain", api)
        api.delete(finding.kind, finding.namespace, finding.name, uid=finding.uid)
    code = "kept_data_deleted" if with_data else "kept_claim_deleted" if volume else "drift_deleted"
    _add_event(finding, code, by=actor.user.get_username(), volume=volume)


def accept(actor: Actor, finding: Finding) -> bool:
    """Accept a change that somebody made. Another change to the object makes it a finding again."""
    with admin_action(actor, finding, "accept", why_not_accept(finding), is_over=False):
        rows = Finding.objects.filter(pk=finding.pk, digest=finding.digest, resolved_at__isnull=True)
        if not rows.update(accepted_at=timezone.now(), accepted_by=actor.user):
            raise no_longer()  # a look has found another change meanwhile
        _add_event(finding, "drift_accepted", by=actor.user.get_username())
    return True


def recreate(actor: Actor, finding: Finding) -> bool:
    """Recreate the object that a row wants."""
    with admin_action(actor, finding, "recreate", why_not_recreate(finding)) as api:
        if finding.kind in ("Namespace", *FENCES) or finding.name == registries.NAME:
            for body in _of_tenant(finding):
                restore_object(body, api)
            return True
        if finding.kind == "ConfigMap":  # it cannot be changed, so the next start makes it anew
            api.delete(finding.kind, finding.namespace, finding.name, uid=finding.uid)
            return True
        workspace = _workspace(finding)
        if finding.kind == "Pod" and finding.what == What.CHANGED:
            return _repair_pod(actor, finding, workspace, api)
        if finding.kind in WAYS_IN:
            restore_object(admin_repair.wanted_object(workspace, finding.kind), api)
        else:  # its reconcile creates what is missing
            enqueue.reconcile([workspace.pk])
        _add_event(finding, "drift_recreated", by=actor.user.get_username())
    return True


def restore_object(body: dict[str, Any], api: Api) -> None:
    """Set Berth's fields again, then remove others' fields where Berth wants none."""
    there = api.apply(body)
    metadata = there["metadata"]
    if operations := removals(body, differences(there), there):
        same = {"op": "test", "path": "/metadata/uid", "value": metadata["uid"]}
        api.json_patch(there["kind"], metadata.get("namespace"), metadata["name"], [same, *operations])


def _repair_pod(actor: Actor, finding: Finding, workspace: Workspace, api: Api) -> bool:
    """Put our finalizer back. Any other change needs a new pod, so restart the workspace."""
    if any(field["by"] for field in finding.data["fields"]):
        return admin_repair.restart(actor, workspace)
    restore_finalizer(_there(finding, api), api)
    _add_event(finding, "drift_recreated", by=actor.user.get_username())
    return True


def _there(finding: Finding, api: Api) -> dict[str, Any]:
    body: dict[str, Any] | None = api.get(finding.kind, finding.namespace, finding.name)
    if body is None or body["metadata"]["uid"] != finding.uid:
        raise no_longer()
    return body


def _of_tenant(finding: Finding) -> list[dict[str, Any]]:
    tenant = Tenant.objects.filter(slug=finding.tenant_slug).first()
    if tenant is None:
        raise no_longer()
    bodies = ensuring.wanted_objects(tenant, finding.cluster, Installation.current_id())
    return [body for body in bodies if body["kind"] == finding.kind]


def _workspace(finding: Finding) -> Workspace:
    if finding.workspace is None:
        raise no_longer()
    return Workspace.objects.select_related(*RELATED).get(pk=finding.workspace.pk)


def _add_event(finding: Finding, code: str, **data: Any) -> None:
    """Add an event to the story of the workspace, if a row knows it."""
    if finding.workspace is not None:
        admin_repair.add_admin_event(finding.workspace, code, object=f"{finding.kind} {finding.name}", **data)


DOERS: dict[str, Callable[[Actor, Finding], bool]] = {
    "accept": accept,
    "recreate": recreate,
    "delete": delete,
    "delete_data": partial(delete, with_data=True),
}

# --- Common to all actions


@contextmanager
def admin_action(
    actor: Actor, finding: Finding, verb: str, why_not: str, *, is_over: bool = True
) -> Iterator[Api]:
    """Check that the action is allowed and still applies, record it, and resolve the finding after it."""
    actor.require(Scope.ADMIN)
    if why_not:
        raise Conflict("drift_cannot", why_not)
    try:
        api = api_for(finding.cluster)
        if not is_still_so(finding, api):
            raise no_longer()
        tenant = Tenant.objects.filter(slug=finding.tenant_slug).first()
        data = {"name": str(finding), "cluster": finding.cluster.name, "uid": finding.uid}
        audit.record(actor, f"drift.{verb}", target=finding, tenant=tenant, data=data)
        yield api
    except ClusterError as error:
        raise running.conflict(error) from None
    if is_over:
        now = timezone.now()
        Finding.objects.filter(pk=finding.pk, resolved_at__isnull=True).update(
            resolved_at=now, last_seen_at=now
        )
    looks.want(finding.cluster_id)


def is_still_so(finding: Finding, api: Api) -> bool:
    """Return True if a fresh look gives the same finding about the same object."""
    key = Key(finding.kind, finding.namespace, finding.name)
    rows = rows_of(finding.cluster, *filter(None, [finding.workspace_uuid]))
    thing = thing_at(key, api)
    if finding.what == What.MISSING:
        row = rows.get(finding.workspace_uuid) if finding.workspace_uuid else None
        wanted = set(row.wanted()) if row is not None else set()
        return thing is None and (key in wanted or (key.kind in FENCES and is_ours(key.namespace, api)))
    if thing is None or thing.goes or thing.uid != finding.uid:
        return False
    job = naming.named_in(finding.name)
    jobs = of_jobs.namespaces_of(finding.cluster, job) if job else {}
    found = judge(thing, rows, namespaces(), other_claims(finding.cluster), jobs)
    checked = check_against_other_rows(finding.cluster, [found] if found else [])
    return [(one.what, digest_in(one)) for one in checked] == [(finding.what, finding.digest)]


def is_ours(namespace: str, api: Api) -> bool:
    """Return True for a tenant's namespace, unless another installation on this cluster has a tenant of that name."""
    there = thing_at(Key("Namespace", "", namespace), api) if namespace in namespaces() else None
    return there is not None and not there.goes


def no_longer() -> Conflict:
    return Conflict(
        "drift_no_longer",
        _("It has changed since it was checked, so nothing was done."),
        _("“Check now” shows its current state."),
    )
