"""Actions of an admin on a node: close it, open it, drain it with notice, forget an agent that was removed.

A drain is stored as a trouble of the node, so it outlives every process. Opening the node, here or with kubectl,
cancels it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.access import Actor
from accounts.errors import Conflict
from accounts.models import Scope
from accounts.trail import audit
from clusters.connections import api_for
from clusters.errands import running
from clusters.errors import ClusterError
from clusters.models import Gpu, Node
from monitoring import enqueue
from monitoring.health import judging
from monitoring.health.rules import DRAINS, is_silent
from monitoring.models import AgentState, Trouble
from quotas import holders
from quotas.pools.nodes import claims_on

CORDONED_BY, CORDONED_WHY = "berth.dev/cordoned-by", "berth.dev/cordoned-why"
LONGEST_WHY = 200


def cordon(actor: Actor, node: Node, why: str = "") -> bool:
    """Close the node for new work; running work continues. Return False if it was closed already."""
    with admin_action(actor, node, "cordon", {"why": why}):
        return _close(actor, node, why)


def uncordon(actor: Actor, node: Node) -> bool:
    """Open the node, whoever closed it, and cancel a drain. Return False if it was open."""
    with admin_action(actor, node, "uncordon"):
        is_changed = _set(node, closed=False, by=None, why=None)
    with transaction.atomic():
        judging.lock(node.cluster_id, node.name)
        is_changed |= bool(open_drain(node).update(ended_at=timezone.now()))
        judging.judge(node.cluster_id, node.name)
    enqueue.tell_of_health(node.cluster_id)
    return is_changed


def drain(actor: Actor, node: Node, minutes: int, why: str = "") -> bool:
    """Close the node, notify everybody on it, and stop them after `minutes`. Return False if it drains already."""
    until = timezone.now() + timedelta(minutes=minutes)
    with admin_action(actor, node, "drain", {"minutes": minutes, "why": why}):
        _close(actor, node, why)
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
    """Delete the rows of a removed agent and its GPUs. Return False if the agent reports, or never did."""
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
    """Stop all runs on nodes whose drain is due. A late or repeated call has the same effect."""
    now = timezone.now()
    for trouble in Trouble.objects.filter(code=DRAINS, ended_at=None):
        if datetime.fromisoformat(trouble.data["until"]) <= now:
            for claim in claims_on(trouble.cluster_id, trouble.node):
                holders.drain(claim)


def open_drain(node: Node) -> Any:
    return Trouble.objects.filter(cluster=node.cluster_id, node=node.name, code=DRAINS, ended_at=None)


@contextmanager
def admin_action(actor: Actor, node: Node, verb: str, data: dict[str, Any] | None = None) -> Iterator[None]:
    """Check the permission, and record the action before the cluster is called."""
    actor.require(Scope.ADMIN)
    audit.record(actor, f"cluster.{verb}", target=node.cluster, data={"node": node.name, **(data or {})})
    try:
        yield
    except ClusterError as error:
        raise running.conflict(error) from None


def _close(actor: Actor, node: Node, why: str) -> bool:
    return _set(node, closed=True, by=actor.user.get_username(), why=why[:LONGEST_WHY] or None)


def _set(node: Node, *, closed: bool, by: str | None, why: str | None) -> bool:
    """Return False if the node was so already, whoever set it. The worker asks the cluster if this is web."""
    return bool(running.ask("monitoring.close", node_id=node.pk, closed=closed, by=by, why=why))


def close_for(*, node_id: int, closed: bool, by: str | None, why: str | None) -> bool:
    """Do the errand of `_set`."""
    node = Node.objects.select_related("cluster").get(pk=node_id)
    api = api_for(node.cluster)
    there = api.get("Node", None, node.name)
    if there is None:
        raise Conflict("node_gone", _("The cluster no longer has a node of this name."))
    if bool(there["spec"].get("unschedulable")) == closed:
        return False
    annotations = {CORDONED_BY: by, CORDONED_WHY: why}
    body = {"metadata": {"annotations": annotations}, "spec": {"unschedulable": closed or None}}
    api.merge_patch("Node", None, node.name, body)
    return True
