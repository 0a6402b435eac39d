"""What an admin does about a node: close it, open it, drain it with notice, forget an agent that was taken off.

A drain closes the node at once and tells everybody on it when it is time. It stands as a trouble of the node, so it
outlives every process; whoever opens the node again, here or with kubectl, calls it off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import audit
from accounts.access import Actor
from accounts.errors import Conflict
from accounts.models import Scope
from clusters.api import Api
from clusters.connections import api_for
from clusters.errors import ClusterError
from clusters.models import Gpu, Node, PodUsage
from monitoring import tasks
from monitoring.health import judging
from monitoring.health.rules import DRAINS, is_silent
from monitoring.models import AgentState, Trouble
from workspaces import maintenance

CORDONED_BY, CORDONED_WHY = "berth.dev/cordoned-by", "berth.dev/cordoned-why"
LONGEST_WHY = 200


def cordon(actor: Actor, node: Node, why: str = "") -> bool:
    """Nothing new starts there; what runs goes on. False: it was closed already."""
    with deed(actor, node, "cordon", {"why": why}) as api:
        return _close(actor, node, why, api)


def uncordon(actor: Actor, node: Node) -> bool:
    """Open again, whoever closed it; a drain is called off. False: it was open."""
    with deed(actor, node, "uncordon") as api:
        is_changed = _set(api, node, closed=False, by=None, why=None)
    with transaction.atomic():
        judging.lock(node.cluster_id, node.name)
        is_changed |= bool(open_drain(node).update(ended_at=timezone.now()))
        judging.judge(node.cluster_id, node.name)
    tasks.enqueue_telling(node.cluster_id)
    return is_changed


def drain(actor: Actor, node: Node, minutes: int, why: str = "") -> bool:
    """Closed now; who is on it is told, and stopped after so many minutes. False: it is being drained already."""
    until = timezone.now() + timedelta(minutes=minutes)
    with deed(actor, node, "drain", {"minutes": minutes, "why": why}) as api:
        _close(actor, node, why, api)
    with transaction.atomic():
        judging.lock(node.cluster_id, node.name)
        if open_drain(node).exists():
            return False
        Trouble.objects.create(
            cluster=node.cluster,
            about=Trouble.About.NODE,
            subject=node.name,
            node=node.name,
            code=DRAINS,
            data={"until": until.isoformat()},
            takes_out=True,
            since=timezone.now(),
        )
        judging.judge(node.cluster_id, node.name)
    return True


def forget_agent(actor: Actor, node: Node) -> bool:
    """It was taken off, and what it told last counts no more. False: it tells, or never did."""
    actor.require(Scope.ADMIN)
    with transaction.atomic():
        judging.lock(node.cluster_id, node.name)
        agent = AgentState.objects.filter(cluster=node.cluster_id, node=node.name).first()
        if agent is None or not is_silent(agent, timezone.now()):
            return False
        agent.delete()
        Gpu.objects.filter(cluster=node.cluster_id, node=node.name).delete()
        audit.record(actor, "cluster.forget_agent", target=node.cluster, data={"node": node.name})
        judging.judge(node.cluster_id, node.name)
    return True


def pass_due() -> None:
    """Stop whoever is still on a node whose drain's time has come. Late or twice, it does the same."""
    now = timezone.now()
    for trouble in Trouble.objects.filter(code=DRAINS, ended_at=None):
        if datetime.fromisoformat(trouble.data["until"]) <= now:
            runs = PodUsage.objects.filter(cluster=trouble.cluster_id, node=trouble.node, run__isnull=False)
            for pod in runs.order_by("run"):
                if pod.run is not None:
                    maintenance.stop_run(pod.run)


def open_drain(node: Node) -> Any:
    return Trouble.objects.filter(cluster=node.cluster_id, node=node.name, code=DRAINS, ended_at=None)


@contextmanager
def deed(actor: Actor, node: Node, verb: str, data: dict[str, Any] | None = None) -> Iterator[Api]:
    """Allowed, and on record before the cluster is asked."""
    actor.require(Scope.ADMIN)
    told = {"node": node.name, **(data or {})}
    audit.record(actor, f"cluster.{verb}", target=node.cluster, data=told)
    try:
        yield api_for(node.cluster)
    except ClusterError as error:
        text = _("The cluster did not do it: %(why)s") % {"why": error.message}
        raise Conflict("cluster_refused", text, _("Look at the cluster, then try again.")) from None


def _close(actor: Actor, node: Node, why: str, api: Api) -> bool:
    return _set(api, node, closed=True, by=actor.user.get_username(), why=why[:LONGEST_WHY] or None)


def _set(api: Api, node: Node, *, closed: bool, by: str | None, why: str | None) -> bool:
    """False: it is so already, by whomever."""
    there = api.get("Node", None, node.name)
    if there is None:
        raise Conflict("node_gone", _("The cluster has no node of this name any more."))
    if bool(there["spec"].get("unschedulable")) == closed:
        return False
    annotations = {CORDONED_BY: by, CORDONED_WHY: why}
    body = {"metadata": {"annotations": annotations}, "spec": {"unschedulable": closed or None}}
    api.merge_patch("Node", None, node.name, body)
    return True
