"""Doctor checks of a cluster's pools: of its nodes as they are now, and of Kueue. Changes nothing."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from clusters.api import Api, list_if_served
from clusters.doctor import Finding, Level
from clusters.models import Cluster, Node
from clusters.nodes import kueue
from clusters.nodes.inventory import node_values
from clusters.nodes.kueue import Managed
from clusters.nodes.node_labels import STRATEGY
from quotas import sharing
from quotas.models import Pool
from quotas.pools import rules as pool_rules
from quotas.pools import selection

MOST_NAMED = 3

Members = Mapping[Pool, Sequence[Node]]


def findings_about(cluster: Cluster, api: Api) -> Iterator[Finding]:
    pools = list(Pool.objects.filter(cluster=cluster))
    if not pools:
        yield Finding(Level.OK, _("No pool is made of its nodes yet."))
        return
    seen = [node_values(body) for body in api.list("Node")]
    classes = {body["metadata"]["name"] for body in list_if_served(api, "RuntimeClass")}
    nodes = [
        Node(cluster=cluster, name=one.name, labels=dict(one.labels), allocatable=dict(one.allocatable))
        for one in seen
    ]
    yield from without_runtime(pools, classes)
    yield from findings({pool: selection.members(pool, nodes) for pool in pools}, nodes, kueue.managed(api))


def without_runtime(pools: Sequence[Pool], classes: Collection[str]) -> Iterator[Finding]:
    for pool in pools:
        if pool.runtime_class and pool.runtime_class not in classes:
            facts = {
                "pool": pool.name,
                "name": pool.runtime_class,
                "names": _(", ").join(sorted(classes)) or "–",
            }
            yield Finding(
                Level.FAIL,
                _("The pool %(pool)s names the runtime class %(name)s, which does not exist.") % facts,
                _("The cluster has: %(names)s. Correct the pool, or make the class.") % facts,
            )


def findings(members: Members, nodes: Sequence[Node], managed: Sequence[Managed]) -> Iterator[Finding]:
    """Yield what was found. Pure. `nodes`: all of the cluster."""
    found = [
        *(finding for pool, mine in members.items() for finding in of_pool(pool, mine, nodes)),
        *(finding for pool, mine in members.items() for finding in of_kueue(pool, mine, managed)),
        *between_pools(members),
    ]
    yield from found
    if not any(finding.level in (Level.WARN, Level.FAIL) for finding in found):
        text = ngettext(
            "%(n)d pool has matching nodes.",
            "%(n)d pools have matching nodes.",
            len(members),
        )
        yield Finding(Level.OK, text % {"n": len(members)})


def of_pool(pool: Pool, mine: Sequence[Node], nodes: Sequence[Node]) -> Iterator[Finding]:
    for texts in pool_rules.faults(pool).values():
        text = _("The pool %(pool)s has an invalid setting: %(fault)s") % {
            "pool": pool.name,
            "fault": texts[0],
        }
        yield Finding(Level.FAIL, text, _("Correct it on the pool's page."))
    if pool.match_ecc is not None and not any(selection.ECC in node.labels for node in nodes):
        yield Finding(
            Level.WARN,
            _("The pool %(pool)s requires ECC, but no node reports whether it has it.") % {"pool": pool.name},
            _("Run Berth's agent on them, or label them: kubectl label node NAME %(label)s=true")
            % {"label": selection.ECC},
        )
    if not mine:
        text = _("No node belongs to the pool %(pool)s: nothing starts there.") % {"pool": pool.name}
        yield Finding(Level.WARN, text, _("Compare what it asks for with `kubectl get nodes --show-labels`."))
    elif pool.has_gpus and not any(node.allocatable.get(pool.resource_name) for node in mine):
        announced = sorted(
            {name for node in mine for name, units in node.allocatable.items() if "/" in name and units}
        )
        facts = {"pool": pool.name, "resource": pool.resource_name, "names": _(", ").join(announced) or "–"}
        yield Finding(
            Level.FAIL,
            _("No node of the pool %(pool)s announces %(resource)s.") % facts,
            _("They announce: %(names)s. Correct the pool's resource, or look at the device plugin.") % facts,
        )
    yield from cut_otherwise(pool, mine)


def cut_otherwise(pool: Pool, mine: Sequence[Node]) -> Iterator[Finding]:
    """Report nodes that cut GPUs otherwise: the pool would count replicas as whole GPUs, or the reverse."""
    own = sharing.of(pool).strategy_label
    others = [
        node
        for node in mine
        if own and node.allocatable.get(pool.resource_name) and node.labels.get(STRATEGY, own) != own
    ]
    if others:
        facts = {
            "pool": pool.name,
            "sharing": pool.get_sharing_display(),
            "nodes": names(others),
            "theirs": others[0].labels[STRATEGY],
        }
        yield Finding(
            Level.FAIL,
            _("The pool %(pool)s counts on %(sharing)s, and %(nodes)s say: %(theirs)s.") % facts,
            _("Choose the nodes more narrowly, or correct how the pool shares a GPU."),
        )


def of_kueue(pool: Pool, mine: Sequence[Node], managed: Sequence[Managed]) -> Iterator[Finding]:
    """Report GPUs that Kueue hands out too: the two queues do not know of each other."""
    queues = {
        one.queue: names(shared)
        for one in managed
        if pool.has_gpus and one.resource == pool.resource_name
        if (shared := [node for node in mine if one.on(node.labels)])
    }
    for queue, nodes in sorted(queues.items()):
        facts = {"pool": pool.name, "queue": queue, "nodes": nodes, "resource": pool.resource_name}
        yield Finding(
            Level.FAIL,
            _(
                "Kueue hands out the GPUs of the pool %(pool)s, too: its ClusterQueue %(queue)s has the "
                "%(resource)s of %(nodes)s."
            )
            % facts,
            _("Give each its own nodes: by a label that the pool asks for and Kueue's flavors do not have."),
        )


def between_pools(members: Members) -> Iterator[Finding]:
    with_gpus = [pool for pool in members if pool.has_gpus]
    for one, other in combinations(with_gpus, 2):
        shared = [node for node in members[one] if node in members[other]]
        if one.resource_name != other.resource_name or not shared:
            continue
        facts = {"one": one.name, "other": other.name, "nodes": names(shared)}
        if (one.sharing, one.units_per_gpu) != (other.sharing, other.units_per_gpu):
            yield Finding(
                Level.FAIL,
                _("%(one)s and %(other)s both have %(nodes)s, and cut their GPUs in different ways.") % facts,
                _("A node cuts its GPUs in one way: choose the nodes of the two pools apart."),
            )
        else:
            text = _("%(one)s and %(other)s share the GPUs of %(nodes)s; each is given out once.")
            yield Finding(Level.OK, text % facts)


def names(nodes: Sequence[Node]) -> str:
    named = [node.name for node in nodes[:MOST_NAMED]]
    if more := len(nodes) - len(named):
        named.append(ngettext("%(n)d more", "%(n)d more", more) % {"n": more})
    return _(", ").join(named)
