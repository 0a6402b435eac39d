"""Is a cluster fit for Berth? Looks, changes nothing, and says of everything that is missing what to do about it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.db.models import TextChoices
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from clusters.api import Api
from clusters.connections import connect
from clusters.errors import ClusterError, ClusterRefused
from clusters.faults import explained
from clusters.inventory import node_values
from clusters.kinds import KINDS
from clusters.models import Cluster
from clusters.permissions import NEEDS, Need
from clusters.signals import examined
from clusters.transport import Json, Objects

OLDEST_MINOR, NEWEST_MINOR = 30, 36
DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"
WITHIN_SECONDS = 20.0  # somebody waits for the page
AT_ONCE = 8  # requests for rights
GPU = re.compile(r"gpu|/mig-|vcuda", re.IGNORECASE)


class Level(TextChoices):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


class Check(TextChoices):
    CONNECTION = "connection", _lazy("Connection and version")
    RIGHTS = "rights", _lazy("Rights")
    STORAGE = "storage", _lazy("Storage")
    NODES = "nodes", _lazy("Nodes and GPUs")
    ADDRESSES = "addresses", _lazy("Addresses of workspaces")
    POOLS = "pools", _lazy("Pools")
    ISOLATION = "isolation", _lazy("Isolation of tenants")


@dataclass(frozen=True)
class Finding:
    level: Level
    message: str
    hint: str = ""
    check: Check = Check.CONNECTION
    yaml: str = ""  # what to add to the ClusterRole


def examine(cluster: Cluster, namespaces: Sequence[str] = ()) -> list[Finding]:
    """Every finding, the good ones too. Nothing more is looked at where there is no connection.

    A right that is missing is also looked for in these namespaces: it may be granted there and not everywhere.
    """
    try:
        api = connect(cluster, within_seconds=WITHIN_SECONDS)
        version = api.version()
    except ClusterError as error:
        message, hint = explained(error, cluster)
        return [Finding(Level.FAIL, message, hint)]
    findings = [about_version(version)]
    looks = {Check.STORAGE: storage, Check.NODES: nodes, Check.ADDRESSES: addresses, Check.POOLS: from_above}
    findings += _of(Check.RIGHTS, cluster, lambda: rights(api, cluster, namespaces))
    for check, look in looks.items():
        findings += _of(check, cluster, lambda look=look: look(api, cluster))  # type: ignore[misc]
    return [*findings, replace(isolation(cluster), check=Check.ISOLATION)]


def _of(check: Check, cluster: Cluster, look: Callable[[], Iterator[Finding]]) -> list[Finding]:
    try:
        return [replace(finding, check=check) for finding in look()]
    except ClusterRefused as refused:
        if refused.status == 403:  # the right is named as missing already
            return [Finding(Level.WARN, _("This could not be looked at: a right is missing."), "", check)]
        return [Finding(Level.FAIL, *explained(refused, cluster), check)]
    except ClusterError as error:
        return [Finding(Level.FAIL, *explained(error, cluster), check)]


def about_version(version: str) -> Finding:
    match = re.match(r"v1\.(\d+)", version)
    if match is None or not OLDEST_MINOR <= int(match[1]) <= NEWEST_MINOR:
        return Finding(
            Level.WARN,
            _("Kubernetes %(version)s was not tried with Berth.") % {"version": version or "?"},
            _("1.%(oldest)s to 1.%(newest)s were.") % {"oldest": OLDEST_MINOR, "newest": NEWEST_MINOR},
        )
    return Finding(Level.OK, _("Kubernetes %(version)s answers.") % {"version": version})


# --- rights


def rights(api: Api, cluster: Cluster, namespaces: Sequence[str] = ()) -> Iterator[Finding]:
    """Asks the cluster for each right by itself: what it says is what counts, however it was granted."""
    wanted = [(need, verb) for need in NEEDS for verb in need.verbs]
    try:
        first = may(api, *wanted[0])
        with ThreadPoolExecutor(AT_ONCE) as pool:
            others = list(pool.map(lambda right: may(api, *right), wanted[1:]))
    except ClusterRefused as refused:
        if refused.status != 404:
            raise
        yield Finding(Level.WARN, _("The cluster does not tell what Berth may do: it has no access reviews."))
        return
    granted = dict(zip(wanted, [first, *others], strict=True))
    for need in NEEDS:
        if verbs := [verb for verb in need.verbs if not granted[need, verb]]:
            yield missing(api, need, verbs, namespaces)
    if all(granted.values()):
        yield Finding(Level.OK, _("Berth has all %(count)s rights that it needs.") % {"count": len(wanted)})


def missing(api: Api, need: Need, verbs: Sequence[str], namespaces: Sequence[str]) -> Finding:
    """What to add to the ClusterRole; and where the right is there after all, but not everywhere."""
    facts = {"verbs": ", ".join(verbs), "resource": need.resource}
    message = _("Berth may not %(verbs)s %(resource)s.") % facts
    hint = _(
        "Add these lines to Berth's ClusterRole; deploy/kubernetes/rbac.yaml has every right that it needs."
    )
    if KINDS[need.kind].namespaced:
        within = [name for name in namespaces if all(may(api, need, verb, name) for verb in verbs)]
        if within:
            hint = _(
                "It may in %(namespaces)s, but not in every namespace, and new ones are made for new tenants: "
                "bind the role with a ClusterRoleBinding, not a RoleBinding."
            ) % {"namespaces": _(", ").join(within)}
    rule = f'- apiGroups: ["{need.group}"]\n  resources: [{need.resource}]\n  verbs: [{", ".join(verbs)}]'
    return Finding(Level.FAIL, message, hint, Check.RIGHTS, rule)


def may(api: Api, need: Need, verb: str, namespace: str = "") -> bool:
    """In all namespaces unless one is named."""
    attributes = {
        "group": need.group,
        "resource": need.resource.partition("/")[0],
        "subresource": need.subresource,
        "verb": verb,
        "namespace": namespace,
    }
    review = api.create(
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {name: value for name, value in attributes.items() if value}},
        }
    )
    return bool(review.get("status", {}).get("allowed"))


# --- storage


def storage(api: Api, cluster: Cluster) -> Iterator[Finding]:
    classes = {body["metadata"]["name"]: body for body in api.list("StorageClass")}
    default = next((name for name, body in sorted(classes.items()) if is_default(body)), "")
    for purpose, chosen, local in (
        (_("homes"), cluster.home_class, False),
        (_("local disks"), cluster.disk_class, True),
    ):
        name = chosen or default
        if not name:
            yield Finding(
                Level.FAIL,
                _(
                    "There is no storage class for %(purpose)s: none is set, and the cluster has no default one."
                )
                % {"purpose": purpose},
                _("Name one in the cluster's settings, or mark one as the default."),
            )
        elif name not in classes:
            yield Finding(
                Level.FAIL,
                _("The storage class %(name)s for %(purpose)s does not exist.")
                % {"name": name, "purpose": purpose},
                _("The cluster has: %(names)s.") % {"names": _(", ").join(sorted(classes)) or "–"},
            )
        else:
            yield Finding(
                Level.OK, _("Storage class for %(purpose)s: %(name)s.") % {"name": name, "purpose": purpose}
            )
            yield from fitness(classes[name], local=local)


def is_default(storage_class: Json) -> bool:
    return (storage_class["metadata"].get("annotations") or {}).get(DEFAULT_CLASS) == "true"


def fitness(storage_class: Json, *, local: bool) -> Iterator[Finding]:
    name = {"name": storage_class["metadata"]["name"]}
    if local and storage_class.get("volumeBindingMode", "Immediate") != "WaitForFirstConsumer":
        yield Finding(
            Level.WARN,
            _("%(name)s binds at once, so a disk may be made on a node without room for its workspace.")
            % name,
            _("For local disks, use a class with volumeBindingMode: WaitForFirstConsumer."),
        )
    if not storage_class.get("allowVolumeExpansion"):
        yield Finding(
            Level.WARN,
            _("Volumes of %(name)s cannot grow.") % name,
            _("Set allowVolumeExpansion: true on it, if its driver can."),
        )


# --- nodes


def nodes(api: Api, cluster: Cluster) -> Iterator[Finding]:
    found = [node_values(body) for body in api.list("Node")]
    ready = [node for node in found if node.ready and not node.unschedulable]
    if not ready:
        yield Finding(Level.FAIL, _("No node is ready."), _("Look at `kubectl get nodes`."))
        return
    yield Finding(
        Level.OK, _("%(ready)s of %(all)s nodes are ready.") % {"ready": len(ready), "all": len(found)}
    )
    gpus: Counter[str] = Counter()
    for node in ready:
        product = node.labels.get("nvidia.com/gpu.product", "")
        for resource, amount in node.allocatable.items():
            if GPU.search(resource) and amount:
                gpus[f"{resource} ({product})" if product else resource] += amount
    if gpus:
        told = _(", ").join(f"{amount} × {name}" for name, amount in sorted(gpus.items()))
        yield Finding(Level.OK, _("GPUs: %(gpus)s.") % {"gpus": told})
    else:
        yield Finding(
            Level.WARN,
            _("No node offers GPUs."),
            _("If some have them, install the NVIDIA device plugin and GPU Feature Discovery."),
        )
    if gpus and not any("nvidia.com/gpu.memory" in node.labels for node in ready):
        yield Finding(
            Level.WARN,
            _("Nodes do not tell the memory and kind of their GPUs."),
            _("Install GPU Feature Discovery, or fill in the pools by hand."),
        )


# --- addresses


def _through_the_portal() -> Finding:
    if settings.WORKSPACE_DOMAIN:
        domain = f"*.{settings.WORKSPACE_DOMAIN}"
        return Finding(
            Level.OK, _("Workspaces are reached through Berth, at %(domain)s.") % {"domain": domain}
        )
    return Finding(
        Level.FAIL,
        _("Workspaces are to be reached through Berth, which has no domain for them."),
        _("Set BERTH_WORKSPACE_DOMAIN, and let its DNS entry *.<domain> and your ingress lead to Berth."),
    )


def _by_node_ports(cluster: Cluster) -> Finding:
    at = cluster.node_address or _("each node’s own address")
    if settings.WORKSPACE_DOMAIN:
        return Finding(Level.OK, _("SSH is reached at ports of the nodes, at %(address)s.") % {"address": at})
    return Finding(
        Level.WARN,
        _("Workspaces are reached at ports of the nodes, at %(address)s, JupyterLab in clear text.")
        % {"address": at},
        _("Set BERTH_WORKSPACE_DOMAIN, and JupyterLab is opened through Berth."),
    )


def addresses(api: Api, cluster: Cluster) -> Iterator[Finding]:
    """Somebody must give addresses to Services. Who does cannot be asked, only seen."""
    if cluster.exposure == Cluster.Exposure.NODE_PORT:
        yield _by_node_ports(cluster)
        return
    if cluster.exposure == Cluster.Exposure.PORTAL:
        yield _through_the_portal()
        return
    services = [body for body in api.list("Service") if body["spec"].get("type") == "LoadBalancer"]
    waiting = [body for body in services if not body.get("status", {}).get("loadBalancer", {}).get("ingress")]
    if len(services) > len(waiting):
        yield Finding(Level.OK, _("Services of type LoadBalancer get addresses."))
    elif services:
        yield Finding(
            Level.WARN,
            _("%(count)s Services of type LoadBalancer wait for an address.") % {"count": len(waiting)},
            _(
                "Install MetalLB and give it a pool of addresses, or choose NodePort in the cluster's settings."
            ),
        )
    elif provider := address_provider(api, api.list("Node")):
        yield Finding(Level.OK, _("Addresses come from %(provider)s.") % {"provider": provider})
    else:
        yield Finding(
            Level.WARN,
            _("Nobody was recognised who gives addresses to Services of type LoadBalancer."),
            _(
                "Install MetalLB, or choose NodePort in the cluster's settings. A first workspace will show it."
            ),
        )


def address_provider(api: Api, node_bodies: Objects) -> str:
    if "metallb.io" in api.groups():
        return "MetalLB"
    providers = {body.get("spec", {}).get("providerID", "").partition(":")[0] for body in node_bodies}
    return next(iter(sorted(providers - {"", "kind", "k3s"})), "")


# --- the rooms above


def from_above(api: Api, cluster: Cluster) -> Iterator[Finding]:
    answers: list[tuple[Any, Any]] = examined.send(sender=Cluster, cluster=cluster, api=api)
    for _receiver, findings in answers:
        yield from findings


# --- isolation


def isolation_gaps(cluster: Cluster) -> list[str]:
    """The networks that must be known before tenants count as isolated from each other."""
    networks = (
        (_("pod networks"), cluster.pod_cidrs),
        (_("service networks"), cluster.service_cidrs),
        (_("addresses of the API server"), cluster.api_cidrs),
    )
    return [name for name, cidrs in networks if not cidrs]


def isolation(cluster: Cluster) -> Finding:
    if gaps := isolation_gaps(cluster):
        return Finding(
            Level.WARN,
            _("Tenants are not isolated from each other: %(gaps)s are not set.")
            % {"gaps": _(", ").join(gaps)},
            _("Fill them in in the cluster's settings; workspaces get network policies made from them."),
        )
    return Finding(Level.OK, _("Network policies keep tenants from each other and from the API server."))
